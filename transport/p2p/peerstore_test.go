package p2p

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	ma "github.com/multiformats/go-multiaddr"
)

func someone(t *testing.T) peer.ID {
	t.Helper()
	who, err := PeerOf(identity.New().ID())
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// TestAddressesExpire: nothing is kept of a peer's addresses a while after it disconnected,
// in the order in which identify and gossipsub mark that.
func TestAddressesExpire(t *testing.T) {
	at, other, kept := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1"), ma.StringCast("/ip4/192.0.2.3/tcp/1")
	for name, disconnects := range map[string]func(peerstore.Peerstore, peer.ID){
		"identify": func(s peerstore.Peerstore, p peer.ID) {
			all := s.Addrs(p)
			s.UpdateAddrs(p, peerstore.ConnectedAddrTTL, peerstore.TempAddrTTL)
			s.AddAddrs(p, all, peerstore.RecentlyConnectedAddrTTL)
			s.UpdateAddrs(p, peerstore.TempAddrTTL, 0)
		},
		"gossipsub": func(s peerstore.Peerstore, p peer.ID) {
			s.UpdateAddrs(p, peerstore.ConnectedAddrTTL, peerstore.RecentlyConnectedAddrTTL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := newPeers(nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for range 10 {
					p := someone(t)
					s.AddAddrs(p, []ma.Multiaddr{at}, peerstore.TempAddrTTL) // it was dialled there
					s.AddAddrs(p, []ma.Multiaddr{at, other}, peerstore.ConnectedAddrTTL)
					time.Sleep(time.Hour)
					if n := len(s.Addrs(p)); n != 2 {
						t.Fatalf("%d addresses of a peer that is connected", n)
					}
					disconnects(s, p)
					if n := len(s.Addrs(p)); n != 2 {
						t.Fatalf("%d addresses of a peer that has just disconnected", n)
					}
				}
				relay := someone(t)
				s.AddAddrs(relay, []ma.Multiaddr{kept}, peerstore.PermanentAddrTTL)
				s.AddAddrs(relay, []ma.Multiaddr{at, kept}, peerstore.ConnectedAddrTTL)
				disconnects(s, relay)
				time.Sleep(peerstore.RecentlyConnectedAddrTTL + 2*time.Minute)
				if all := s.PeersWithAddrs(); len(all) != 1 || all[0] != relay || len(s.Addrs(relay)) != 1 {
					t.Errorf("addresses of %d peers are kept", len(all))
				}
			})
		})
	}
}

// TestForgetful: a relay forgets the addresses of a stranger that has left, and not those of
// a relay, nor where it was told that a peer is.
func TestForgetful(t *testing.T) {
	s, err := newPeers(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at, told := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1")
	stranger, relay, other := someone(t), someone(t), someone(t)
	s.SetProtocols(relay, proto.ProtoIDv2Hop)
	s.AddAddrs(other, []ma.Multiaddr{told}, peerstore.PermanentAddrTTL)
	for _, p := range []peer.ID{stranger, relay, other} {
		s.AddAddrs(p, []ma.Multiaddr{at}, peerstore.ConnectedAddrTTL)
		s.UpdateAddrs(p, peerstore.ConnectedAddrTTL, peerstore.RecentlyConnectedAddrTTL)
		forgetful{s}.RemovePeer(p)
	}
	for p, want := range map[peer.ID][]ma.Multiaddr{stranger: nil, relay: {at}, other: {told}} {
		if have := s.Addrs(p); len(have) != len(want) || len(want) > 0 && !have[0].Equal(want[0]) {
			t.Errorf("addresses %v, not %v", have, want)
		}
	}
}
