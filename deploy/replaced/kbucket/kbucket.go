// Package kbucket is github.com/libp2p/go-libp2p-kbucket without its table of a key for each
// prefix: a random peer ID is searched for instead. See the README two folders up.
package kbucket

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/libp2p/go-libp2p-kbucket/peerdiversity"
	"github.com/libp2p/go-libp2p-kbucket/upstream"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

const PeerIDPreimageMaxCpl = kbucket.PeerIDPreimageMaxCpl

type (
	ID       = kbucket.ID
	PeerInfo = kbucket.PeerInfo
)

var (
	ErrLookupFailure           = kbucket.ErrLookupFailure
	ErrPeerRejectedHighLatency = kbucket.ErrPeerRejectedHighLatency
	ErrPeerRejectedNoCapacity  = kbucket.ErrPeerRejectedNoCapacity
)

func Closer(a, b peer.ID, key string) bool { return kbucket.Closer(a, b, key) }
func CommonPrefixLen(a, b ID) int          { return kbucket.CommonPrefixLen(a, b) }
func ConvertKey(id string) ID              { return kbucket.ConvertKey(id) }
func ConvertPeerID(id peer.ID) ID          { return kbucket.ConvertPeerID(id) }
func SortClosestPeers(peers []peer.ID, target ID) []peer.ID {
	return kbucket.SortClosestPeers(peers, target)
}

// RoutingTable is the upstream's, with another GenRandPeerID.
type RoutingTable struct {
	*kbucket.RoutingTable
	local ID
}

func NewRoutingTable(bucketsize int, local ID, latency time.Duration, m peerstore.Metrics, usefulnessGracePeriod time.Duration,
	df *peerdiversity.Filter) (*RoutingTable, error) {
	rt, err := kbucket.NewRoutingTable(bucketsize, local, latency, m, usefulnessGracePeriod, df)
	if err != nil {
		return nil, err
	}
	return &RoutingTable{rt, local}, nil
}

// GenRandPeerID returns a random peer ID whose common prefix with the local one has cpl bits.
func (rt *RoutingTable) GenRandPeerID(cpl uint) (peer.ID, error) {
	return GenRandPeerIDWithCPL(rt.local, cpl)
}

// GenRandPeerIDWithCPL returns a random peer ID whose common prefix with target has cpl bits.
// It hashes 2^(cpl+1) candidates on average. A refresh asks for no longer prefix than a known
// peer has: in a network of 10,000 peers some 13 bits.
func GenRandPeerIDWithCPL(target ID, cpl uint) (peer.ID, error) {
	if cpl > PeerIDPreimageMaxCpl {
		return "", fmt.Errorf("no peer ID is made for a common prefix of more than %d bits", PeerIDPreimageMaxCpl)
	}
	id := [2 + sha256.Size]byte{0x12, sha256.Size} // a SHA-256 multihash
	rand.Read(id[2:])
	for n := binary.BigEndian.Uint32(id[2:]); ; n++ {
		binary.BigEndian.PutUint32(id[2:], n)
		hash := sha256.Sum256(id[:])
		if bits.LeadingZeros16(binary.BigEndian.Uint16(hash[:])^binary.BigEndian.Uint16(target)) == int(cpl) {
			return peer.ID(id[:]), nil
		}
	}
}
