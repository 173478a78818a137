package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// rank is when each address of a peer is dialled. Relays are left alone for straightFirst
// where there are others, be they at home: the library would have each of these dialled at
// once, and there a handshake with the peer through it, while the peer answers itself.
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
