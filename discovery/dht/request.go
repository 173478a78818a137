package dht

import (
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	keySize             = 34 // a multihash of SHA-256
	maxAddrsPerProvider = 64 // addresses of one peer
)

// sanitizeRequest removes data from a request that a server must not store: records and providers
// other than the sender's own, and all but few addresses. The library refuses a request without
// any.
func sanitizeRequest(h host.Host, from peer.ID, m *pb.Message) {
	m.ProtoReflect().SetUnknown(nil)
	m.CloserPeers = nil
	if m.Type == pb.Message_PUT_VALUE && m.Record != nil && string(m.Key) == keyOf(from) {
		m.Record.ProtoReflect().SetUnknown(nil)
		m.Record.TimeReceived = ""
	} else {
		m.Record = nil
	}
	if m.Type != pb.Message_ADD_PROVIDER || len(m.Key) != keySize {
		m.ProviderPeers = nil
		return
	}
	shown := validPeers(m.ProviderPeers, func(p peer.ID, _ ma.Multiaddr) bool { return p == from })
	m.ProviderPeers = shown[:min(len(shown), 1)]
	if len(shown) > 0 { // these take the place of those that it announced before
		h.Peerstore().UpdateAddrs(from, validity, peerstore.TempAddrTTL)
	}
	if len(h.Peerstore().Addrs(from)) > maxAddrsPerProvider { // only the last ones stay
		h.Peerstore().ClearAddrs(from)
	}
}
