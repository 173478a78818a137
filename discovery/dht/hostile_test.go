package dht

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	stdnet "net"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"
)

// hostileServers are servers that are silent, slow, or name each other and many that do not exist,
// at an address that accepts connections and sends nothing.
func hostileServers(t *testing.T, keys []identity.Key, near *node) (all []peer.AddrInfo) {
	t.Helper()
	pit, err := stdnet.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := pit.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	t.Cleanup(func() { pit.Close() })
	nowhere := ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", pit.Addr().(*stdnet.TCPAddr).Port))
	var hosts []*p2p.Host
	for _, key := range keys {
		h := listen(t, key, false)
		t.Cleanup(func() { h.Close() })
		hosts = append(hosts, h)
		all = append(all, peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()})
	}
	closer := func() (some []*pb.Message_Peer) {
		for _, p := range all[:min(len(all), maxCloser)] {
			some = append(some, &pb.Message_Peer{Id: []byte(p.ID), Addrs: [][]byte{p.Addrs[0].Bytes()}})
		}
		return some
	}()
	for i, h := range hosts {
		h.SetStreamHandler(Prefix+"/kad/1.0.0", func(s network.Stream) {
			defer s.Close()
			r := bufio.NewReader(s)
			for {
				b, err := readMessage(r)
				if err != nil {
					return
				}
				m := new(pb.Message)
				if proto.Unmarshal(b, m) != nil {
					return
				}
				switch i % 4 {
				case 0: // silent
					io.Copy(io.Discard, s)
					<-t.Context().Done()
					s.Reset()
					return
				case 1: // slow
					select {
					case <-t.Context().Done():
						return
					case <-time.After(slowly):
					}
				}
				a := &pb.Message{Type: m.Type, Key: m.Key, CloserPeers: closer}
				if m.Type == pb.Message_GET_PROVIDERS {
					for range maxProviders {
						id := append([]byte{0, 36, 8, 1, 18, 32}, make([]byte, 32)...)
						rand.Read(id[6:])
						a.ProviderPeers = append(a.ProviderPeers, &pb.Message_Peer{Id: id, Addrs: [][]byte{nowhere.Bytes()}})
					}
				}
				s.Write(framed(t, a))
			}
		})
	}
	for _, h := range hosts { // a server remembers them
		if err := h.Connect(t.Context(), near.at()); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if ok, err := near.library.RoutingTable().TryAddPeer(h.ID(), true, true); ok || err != nil || time.Now().After(end) {
				break
			}
			if near.library.RoutingTable().Find(h.ID()) != "" {
				break
			}
		}
	}
	return all
}

// farther is how many of those keys are nearer to what a realm is kept under than a server.
func farther(t *testing.T, r discovery.Realm, server *node, keys []identity.Key) (nearer int) {
	h := r.Hash("realm")
	for _, k := range keys {
		p, err := peer.Decode(k.ID().PeerID())
		if err != nil {
			t.Fatal(err)
		}
		if kb.Closer(p, server.self, string(append([]byte{0x12, 0x20}, h[:]...))) {
			nearer++
		}
	}
	return nearer
}

// slowly is how long a slow server takes for an answer, and how long until a silent one is given
// up. This distinguishes a lookup that waits for them from a busy machine, which takes seconds.
const slowly = 30 * time.Second

// TestAmongHostile: among 40 servers that are silent, slow, or lie, the first site is found without
// waiting for any of them. This also holds for a client that knows more of those than of others,
// and if no known server has the site.
func TestAmongHostile(t *testing.T) {
	for name, known := range map[string]bool{"a known server has it": true, "another has it": false} {
		t.Run(name, func(t *testing.T) {
			n := newNet(t, 2)
			knows, other := n.servers[0], n.servers[1]
			n.known = []peer.AddrInfo{other.at()}
			if known {
				n.known = []peer.AddrInfo{knows.at()}
			}
			keys := make([]identity.Key, 40)
			for i := range keys {
				keys[i] = identity.New()
			}
			home := realm(t, "home")
			for farther(t, home, knows, keys) > 10 { // or it is not named, as it would not have been told
				home = realm(t, "home")
			}
			sites := []*node{(&net{t: t, known: []peer.AddrInfo{knows.at()}}).site(home), (&net{t: t, known: []peer.AddrInfo{knows.at()}}).site(home)}
			if !known { // the other has forgotten
				other.end()
				again := n.open(identity.New(), Options{Server: true})
				again.o.Bootstrap = nil
				if err := again.contact(t.Context(), knows.at()); err != nil {
					t.Fatal(err)
				}
				other = again
				n.known = []peer.AddrInfo{again.at()}
			} else {
				other = knows
			}
			hostile := hostileServers(t, keys, other)
			n.known = append(n.known, hostile[:3]...)
			n.patience = slowly
			looks := n.open(identity.New(), Options{Realm: home})
			start := time.Now()
			var first time.Duration
			found := make(map[identity.ID]bool)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := looks.Lookup(ctx, "", func(s discovery.Sighting) error {
				if first == 0 {
					first = time.Since(start)
				}
				if found[s.Site] = true; len(found) == len(sites) {
					cancel() // the others are not there
				}
				return nil
			})
			t.Logf("the first site after %v, all %d after %v: %v", first.Round(time.Millisecond), len(found), time.Since(start).Round(time.Millisecond), err)
			if !found[sites[0].key.ID()] || !found[sites[1].key.ID()] || len(found) != 2 || first > slowly/2 {
				t.Errorf("%d sites are found, the first after %v", len(found), first)
			}
		})
	}
}
