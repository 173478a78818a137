package memnet

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	ma "github.com/multiformats/go-multiaddr"
)

// peerBook is the library's peerstore, which shares with those of other hosts what is the same in all: the addresses
// of a peer and the names of its protocols. Copies would be a quarter of the memory.
type peerBook struct {
	peerstore.Peerstore
	net *Network

	mu  sync.Mutex
	can map[peer.ID][]protocol.ID // replaced, never changed
}

func newPeerBook(n *Network) (*peerBook, error) {
	all, err := pstoremem.NewPeerstore()
	return &peerBook{Peerstore: all, net: n, can: make(map[peer.ID][]protocol.ID)}, err
}

// AddAddr implements peerstore.AddrBook, as AddAddrs does.
func (b *peerBook) AddAddr(p peer.ID, a ma.Multiaddr, ttl time.Duration) {
	b.AddAddrs(p, []ma.Multiaddr{a}, ttl)
}

// AddAddrs stores the network's copies of the addresses that the peer has now, and all others as they are.
func (b *peerBook) AddAddrs(p peer.ID, addrs []ma.Multiaddr, ttl time.Duration) {
	if h := b.net.host(p); h != nil {
		known := h.Addrs()
		addrs = slices.Clone(addrs)
		for i, a := range addrs {
			if at := slices.IndexFunc(known, a.Equal); at >= 0 {
				addrs[i] = known[at]
			}
		}
	}
	b.Peerstore.AddAddrs(p, addrs, ttl)
}

// GetProtocols implements peerstore.ProtoBook, as the following do.
func (b *peerBook) GetProtocols(p peer.ID) ([]protocol.ID, error) {
	return slices.Clone(b.protocols(p)), nil
}

func (b *peerBook) SetProtocols(p peer.ID, all ...protocol.ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.can[p] = all
	return nil
}

func (b *peerBook) AddProtocols(p peer.ID, more ...protocol.ID) error {
	return b.SetProtocols(p, slices.Concat(b.protocols(p), more)...)
}

func (b *peerBook) RemoveProtocols(p peer.ID, some ...protocol.ID) error {
	return b.SetProtocols(p, slices.DeleteFunc(slices.Clone(b.protocols(p)), func(id protocol.ID) bool {
		return slices.Contains(some, id)
	})...)
}

func (b *peerBook) SupportsProtocols(p peer.ID, some ...protocol.ID) ([]protocol.ID, error) {
	can := b.protocols(p)
	return slices.DeleteFunc(slices.Clone(some), func(id protocol.ID) bool { return !slices.Contains(can, id) }), nil
}

func (b *peerBook) FirstSupportedProtocol(p peer.ID, some ...protocol.ID) (protocol.ID, error) {
	if both, _ := b.SupportsProtocols(p, some...); len(both) > 0 {
		return both[0], nil
	}
	return "", nil
}

func (b *peerBook) RemovePeer(p peer.ID) {
	b.mu.Lock()
	delete(b.can, p)
	b.mu.Unlock()
	b.Peerstore.RemovePeer(p)
}

func (b *peerBook) protocols(p peer.ID) []protocol.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.can[p]
}
