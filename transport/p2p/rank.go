package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// maxRelaysWait bounds how long a relay waits for those before it, of which a lookup can find many that do not
// exist.
const maxRelaysWait = 3 * directHeadStart

// rankDials delays dials through relays by directHeadStart if there are direct addresses, even
// local ones, and those through each further relay by as much again. The library would dial all at
// once, with a handshake through each relay, although the peer answers directly or through the first.
func rankDials(addrs []ma.Multiaddr) []network.AddrDelay {
	var straight []ma.Multiaddr
	var relays []peer.ID
	around := make(map[peer.ID][]ma.Multiaddr)
	for _, a := range addrs {
		if !IsRelayed(a) {
			straight = append(straight, a)
			continue
		}
		relay := relayOf(a)
		if around[relay] == nil {
			relays = append(relays, relay)
		}
		around[relay] = append(around[relay], a)
	}
	all := swarm.DefaultDialRanker(straight)
	var wait time.Duration
	if len(straight) > 0 {
		wait = directHeadStart
	}
	for _, relay := range relays {
		for _, a := range swarm.DefaultDialRanker(around[relay]) {
			a.Delay += wait
			all = append(all, a)
		}
		wait = min(wait+directHeadStart, maxRelaysWait)
	}
	return all
}
