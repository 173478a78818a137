package p2p

import (
	"maps"
	"slices"
	"strings"
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

// peerStore is the library's peerstore with three differences. It keeps the addresses of
// connected peers itself: the library never expires those, and they replace the lifetime that
// an address had (docs/upstream.md). A relay's drops the addresses of a client when it
// disconnects. Only servers are asked whether they reach this host. It is safe for concurrent
// use.
type peerStore struct {
	certified
	isServer func(peer.ID) bool // nil for all
	relay    bool

	mu        sync.RWMutex // held for both while addresses move between them
	connected map[peer.ID][]ma.Multiaddr
}

type certified interface {
	peerstore.Peerstore
	peerstore.CertifiedAddrBook
}

func newPeerStore(server func(peer.ID) bool, relay bool) (*peerStore, error) {
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	return &peerStore{certified: store, isServer: server, relay: relay, connected: make(map[peer.ID][]ma.Multiaddr)}, nil
}

// AddAddrs stores addresses for a time.
func (p *peerStore) AddAddrs(of peer.ID, all []ma.Multiaddr, ttl time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(of, all, ttl)
}

// add is AddAddrs. The caller holds mu.
func (p *peerStore) add(of peer.ID, all []ma.Multiaddr, ttl time.Duration) {
	switch {
	case ttl == peerstore.ConnectedAddrTTL:
		have := slices.Clone(p.connected[of])
		for _, a := range all {
			if a, id := peer.SplitAddr(a); a != nil && (id == "" || id == of) {
				have = append(have, a)
			}
		}
		if len(have) > 0 {
			p.connected[of] = ma.Unique(have)
		}
	case ttl != peerstore.RecentlyConnectedAddrTTL || !p.isRelayClient(of):
		p.certified.AddAddrs(of, all, ttl)
	}
}

// isRelayClient reports whether a relay's peer is neither a relay nor a DHT server: the relay tells
// others only the addresses of those. The library keeps a client's addresses for 15 minutes. Those
// of 2,000 clients touch nearly all pages of the heap, which Go then does not return.
func (p *peerStore) isRelayClient(of peer.ID) bool {
	if !p.relay {
		return false
	}
	offers, _ := p.GetProtocols(of)
	return !slices.ContainsFunc(offers, func(id protocol.ID) bool {
		return id == proto.ProtoIDv2Hop || strings.HasSuffix(string(id), "/kad/1.0.0")
	})
}

// UpdateAddrs changes the lifetime of addresses. Identify calls it when a peer disconnects.
func (p *peerStore) UpdateAddrs(of peer.ID, was, is time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was != peerstore.ConnectedAddrTTL {
		p.certified.UpdateAddrs(of, was, is)
	} else if is != was {
		p.add(of, p.connected[of], is)
		delete(p.connected, of)
	}
}

// Addrs returns the addresses of a peer.
func (p *peerStore) Addrs(of peer.ID) []ma.Multiaddr {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return ma.Unique(append(p.certified.Addrs(of), p.connected[of]...))
}

// PeerInfo returns a peer's ID and addresses.
func (p *peerStore) PeerInfo(of peer.ID) peer.AddrInfo {
	return peer.AddrInfo{ID: of, Addrs: p.Addrs(of)}
}

// PeersWithAddrs returns the peers with stored addresses.
func (p *peerStore) PeersWithAddrs() peer.IDSlice {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := slices.AppendSeq(p.certified.PeersWithAddrs(), maps.Keys(p.connected))
	slices.Sort(all)
	return slices.Compact(all)
}

// ClearAddrs removes all addresses of a peer.
func (p *peerStore) ClearAddrs(of peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connected, of)
	p.certified.ClearAddrs(of)
}

// SupportsProtocols omits AutoNAT for peers that are not servers. Any peer may claim to serve it,
// and two of them would decide whether the host is reachable.
func (p *peerStore) SupportsProtocols(of peer.ID, protocols ...protocol.ID) ([]protocol.ID, error) {
	all, err := p.certified.SupportsProtocols(of, protocols...)
	if p.isServer != nil && !p.isServer(of) {
		all = slices.DeleteFunc(all, func(id protocol.ID) bool { return id == autonatv2.DialProtocol })
	}
	return all, err
}
