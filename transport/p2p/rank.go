package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// rankDials delays dials through relays by directHeadStart if there are direct addresses, even
// local ones. The library would dial both at once, with a handshake through each relay, although
// the peer answers directly.
func rankDials(addrs []ma.Multiaddr) []network.AddrDelay {
	straight := slices.DeleteFunc(slices.Clone(addrs), IsRelayed)
	around := slices.DeleteFunc(slices.Clone(addrs), func(a ma.Multiaddr) bool { return !IsRelayed(a) })
	all := swarm.DefaultDialRanker(straight)
	for _, a := range swarm.DefaultDialRanker(around) {
		if len(straight) > 0 {
			a.Delay += directHeadStart
		}
		all = append(all, a)
	}
	return all
}
