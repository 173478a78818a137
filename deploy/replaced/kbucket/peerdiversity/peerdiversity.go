// Package peerdiversity has the names of the upstream's that kad-dht and its parent use.
package peerdiversity

import (
	"net"

	"github.com/libp2p/go-libp2p-kbucket/upstream/peerdiversity"
	"github.com/libp2p/go-libp2p/core/peer"
)

type (
	CplDiversityStats = peerdiversity.CplDiversityStats
	Filter            = peerdiversity.Filter
	PeerGroupInfo     = peerdiversity.PeerGroupInfo
	PeerIPGroupFilter = peerdiversity.PeerIPGroupFilter
	PeerIPGroupKey    = peerdiversity.PeerIPGroupKey
)

func NewFilter(pgm PeerIPGroupFilter, logKey string, cpl func(peer.ID) int) (*Filter, error) {
	return peerdiversity.NewFilter(pgm, logKey, cpl)
}

func IPGroupKey(ip net.IP) PeerIPGroupKey { return peerdiversity.IPGroupKey(ip) }
