package memnet

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	ma "github.com/multiformats/go-multiaddr"
)

// TestPeerBook: it answers as the library's peerstore, and keeps no copy of an address that the peer has.
func TestPeerBook(t *testing.T) {
	n := New(0, "")
	h := newHost(t, n, 1)
	same, other := ma.StringCast(h.addr.String()), ma.StringCast("/ip4/20.9.9.9/udp/1/quic-v1")
	theirs, err := pstoremem.NewPeerstore()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := newPeerBook(n)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	for _, b := range []interface {
		SetProtocols(peer.ID, ...protocol.ID) error
		AddProtocols(peer.ID, ...protocol.ID) error
		RemoveProtocols(peer.ID, ...protocol.ID) error
		GetProtocols(peer.ID) ([]protocol.ID, error)
		SupportsProtocols(peer.ID, ...protocol.ID) ([]protocol.ID, error)
		FirstSupportedProtocol(peer.ID, ...protocol.ID) (protocol.ID, error)
		AddAddrs(peer.ID, []ma.Multiaddr, time.Duration)
		Addrs(peer.ID) []ma.Multiaddr
		RemovePeer(peer.ID)
	}{theirs, ours} {
		given := []protocol.ID{"/a", "/b"}
		_ = b.SetProtocols(h.ID(), given...)
		_ = b.AddProtocols(h.ID(), "/c")
		_ = b.RemoveProtocols(h.ID(), "/a")
		has, _ := b.GetProtocols(h.ID())
		slices.Sort(has)
		both, _ := b.SupportsProtocols(h.ID(), "/c", "/a", "/b")
		first, _ := b.FirstSupportedProtocol(h.ID(), "/a", "/c")
		if !slices.Equal(has, []protocol.ID{"/b", "/c"}) || !slices.Equal(both, []protocol.ID{"/c", "/b"}) || first != "/c" {
			t.Errorf("%T: %v, %v, %v", b, has, both, first)
		}
		if !slices.Equal(given, []protocol.ID{"/a", "/b"}) {
			t.Errorf("%T changed a shared list: %v", b, given)
		}
		b.AddAddrs(h.ID(), []ma.Multiaddr{same, other}, time.Hour)
		if got := b.Addrs(h.ID()); len(got) != 2 || !ma.Contains(got, same) || !ma.Contains(got, other) {
			t.Errorf("%T: %v", b, got)
		}
		b.RemovePeer(h.ID())
		if has, _ := b.GetProtocols(h.ID()); len(has) != 0 {
			t.Errorf("%T: %v after removal", b, has)
		}
	}
	if !slices.ContainsFunc(ours.Addrs(h.ID()), func(a ma.Multiaddr) bool { return &a[0] == &h.addr[0] }) {
		t.Error("the address is a copy")
	}
}
