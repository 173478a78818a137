package p2p

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	ma "github.com/multiformats/go-multiaddr"
)

// peers is the library's peerstore with two differences: addresses of peers that have
// disconnected expire, and only servers are asked whether they reach this host.
type peers struct {
	certified
	server func(peer.ID) bool // nil for all

	mu sync.RWMutex // held while addresses are replaced
}

type certified interface {
	peerstore.Peerstore
	peerstore.CertifiedAddrBook
}

func newPeers(server func(peer.ID) bool) (*peers, error) {
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	return &peers{certified: store, server: server}, nil
}

// UpdateAddrs replaces the addresses of a peer that is no longer connected: one that was
// stored without expiry would never expire (docs/upstream.md).
func (p *peers) UpdateAddrs(of peer.ID, was, is time.Duration) {
	if was < peerstore.ConnectedAddrTTL || is >= peerstore.ConnectedAddrTTL || is <= 0 {
		p.certified.UpdateAddrs(of, was, is)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.certified.Addrs(of)
	p.certified.UpdateAddrs(of, was, 0)
	stay := p.certified.Addrs(of)
	p.certified.AddAddrs(of, slices.DeleteFunc(before, func(a ma.Multiaddr) bool { return ma.Contains(stay, a) }), is)
}

// Addrs returns the addresses of a peer, also while UpdateAddrs replaces them.
func (p *peers) Addrs(of peer.ID) []ma.Multiaddr {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.certified.Addrs(of)
}

// SupportsProtocols leaves out AutoNAT's of peers that are no servers: whoever connects may
// claim to serve it, and two of them would decide whether the host is reachable.
func (p *peers) SupportsProtocols(of peer.ID, protocols ...protocol.ID) ([]protocol.ID, error) {
	all, err := p.certified.SupportsProtocols(of, protocols...)
	if p.server != nil && !p.server(of) {
		all = slices.DeleteFunc(all, func(id protocol.ID) bool { return id == autonatv2.DialProtocol })
	}
	return all, err
}

// forgetful is a peerstore that forgets the addresses of a peer with all else. The library
// keeps them for a quarter of an hour, and what a thousand strangers leave in every page of
// the heap keeps Go from giving the pages back. Those of relays stay: others are told them.
type forgetful struct{ peerstore.Peerstore }

func (f forgetful) RemovePeer(who peer.ID) {
	relay, _ := f.SupportsProtocols(who, proto.ProtoIDv2Hop)
	f.Peerstore.RemovePeer(who)
	if len(relay) == 0 {
		f.UpdateAddrs(who, peerstore.RecentlyConnectedAddrTTL, 0)
	}
}
