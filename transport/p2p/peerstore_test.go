package p2p

import (
	"fmt"
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
	who, err := PeerID(identity.New().ID())
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// disconnects are the ways in which identify and gossipsub mark that a peer disconnected.
var disconnects = map[string]func(peerstore.Peerstore, peer.ID){
	"identify": func(s peerstore.Peerstore, p peer.ID) {
		all := s.Addrs(p)
		s.UpdateAddrs(p, peerstore.ConnectedAddrTTL, peerstore.TempAddrTTL)
		s.AddAddrs(p, all, peerstore.RecentlyConnectedAddrTTL)
		s.UpdateAddrs(p, peerstore.TempAddrTTL, 0)
	},
	"gossipsub": func(s peerstore.Peerstore, p peer.ID) {
		s.UpdateAddrs(p, peerstore.ConnectedAddrTTL, peerstore.RecentlyConnectedAddrTTL)
	},
}

// TestAddressesExpire: no address of a peer is kept a while after it disconnected.
func TestAddressesExpire(t *testing.T) {
	at, other, kept := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1"), ma.StringCast("/ip4/192.0.2.3/tcp/1")
	for name, disconnects := range disconnects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := newPeerStore(nil, false)
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

// TestAddressesKeepLifetime: an address that was stored for a day is kept for a day, also
// when the peer has the same one while it is connected and disconnects before.
func TestAddressesKeepLifetime(t *testing.T) {
	at, other := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1")
	for name, disconnects := range disconnects {
		for _, relay := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/relay=%v", name, relay), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, err := newPeerStore(nil, relay)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					p := someone(t)
					s.AddAddrs(p, []ma.Multiaddr{at, other}, peerstore.ConnectedAddrTTL)
					s.AddAddrs(p, []ma.Multiaddr{at}, 24*time.Hour) // as a provider in the DHT
					time.Sleep(time.Hour)
					disconnects(s, p)
					time.Sleep(22 * time.Hour)
					if all := s.PeerInfo(p).Addrs; len(all) != 1 || !all[0].Equal(at) {
						t.Errorf("addresses %v after 23 hours", all)
					}
					time.Sleep(2 * time.Hour)
					if len(s.Addrs(p)) != 0 || len(s.PeersWithAddrs()) != 0 {
						t.Errorf("addresses %v after 25 hours", s.Addrs(p))
					}
				})
			})
		}
	}
}

// TestAddressesConnected: the addresses of a connected peer are those that it gave, each
// once, and none of another peer.
func TestAddressesConnected(t *testing.T) {
	s, err := newPeerStore(nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, q := someone(t), someone(t)
	at, other := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1")
	of := func(a ma.Multiaddr, p peer.ID) ma.Multiaddr {
		return a.Encapsulate(ma.StringCast("/p2p/" + p.String()))
	}
	s.AddAddrs(p, []ma.Multiaddr{at, of(at, p), of(other, q), nil}, peerstore.ConnectedAddrTTL)
	s.AddAddrs(p, []ma.Multiaddr{at}, peerstore.TempAddrTTL)
	if all := s.Addrs(p); len(all) != 1 || !all[0].Equal(at) {
		t.Errorf("addresses %v", all)
	}
	if all := s.PeersWithAddrs(); len(all) != 1 || all[0] != p {
		t.Errorf("peers %v", all)
	}
	s.ClearAddrs(p)
	if len(s.Addrs(p)) != 0 || len(s.PeersWithAddrs()) != 0 {
		t.Errorf("addresses %v are left", s.Addrs(p))
	}
}

// TestRelayDropsClients: when a peer disconnects, a relay drops its addresses at once, unless
// it is a relay or a server of the DHT, or somebody else told the relay where the peer is.
func TestRelayDropsClients(t *testing.T) {
	at, told := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.2/tcp/1")
	for name, disconnects := range disconnects {
		t.Run(name, func(t *testing.T) {
			s, err := newPeerStore(nil, true)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			client, relay, server, other := someone(t), someone(t), someone(t), someone(t)
			s.SetProtocols(client, proto.ProtoIDv2Stop, "/meshsub/1.1.0")
			s.SetProtocols(relay, proto.ProtoIDv2Hop)
			s.SetProtocols(server, "/agentsite/kad/1.0.0")
			s.AddAddrs(other, []ma.Multiaddr{told}, peerstore.PermanentAddrTTL)
			for p, want := range map[peer.ID]ma.Multiaddr{client: nil, relay: at, server: at, other: told} {
				s.AddAddrs(p, []ma.Multiaddr{at}, peerstore.ConnectedAddrTTL)
				if !ma.Contains(s.Addrs(p), at) {
					t.Error("a connected peer has no address")
				}
				disconnects(s, p)
				if have := s.Addrs(p); len(have) > 1 || ma.Contains(have, want) != (want != nil) || want == nil && len(have) > 0 {
					t.Errorf("addresses %v, not %v", have, want)
				}
			}
		})
	}
}
