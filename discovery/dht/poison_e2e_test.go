//go:build e2e

package dht

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	kbucket "github.com/libp2p/go-libp2p-kbucket"
	record "github.com/libp2p/go-libp2p-record"
	recpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// hostile is a server that speaks the protocol by hand, as it likes.
type hostile struct {
	host *p2p.Host
	gang *gang
	does misdeed
	end  <-chan struct{} // of the test
}

// gang are hostile servers that know each other.
type gang struct {
	mu  sync.Mutex
	all []*hostile
}

// hostile makes a hostile server that the honest servers accept.
func (n *net) hostile(g *gang, does misdeed) *hostile {
	n.t.Helper()
	end := make(chan struct{})
	h := &hostile{host: listen(n.t, identity.New(), true), gang: g, does: does, end: end}
	n.t.Cleanup(func() {
		close(end)
		h.host.Close()
	})
	h.host.SetStreamHandler(Prefix+"/kad/1.0.0", h.serve)
	h.host.SetStreamHandler(card.Protocol, func(s network.Stream) { io.Copy(s, s); s.Close() })
	for _, s := range n.servers {
		if err := h.host.Connect(n.t.Context(), s.at()); err != nil {
			n.t.Fatal(err)
		}
		// Of those that are equally far a table holds twenty.
		if _, err := s.library.RoutingTable().TryAddPeer(h.host.ID(), true, false); err != nil && !errors.Is(err, kbucket.ErrPeerRejectedNoCapacity) {
			n.t.Fatal(err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, h)
	return h
}

func (h *hostile) at() peer.AddrInfo { return peer.AddrInfo{ID: h.host.ID(), Addrs: h.host.Addrs()} }

// misdeed answers a request, or does something else with the stream.
type misdeed func(h *hostile, s network.Stream, m *pb.Message)

func (h *hostile) serve(s network.Stream) {
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
		if m.Type == pb.Message_FIND_NODE { // so that it is believed to be one
			h.say(s, &pb.Message{Type: m.Type, CloserPeers: h.friends()})
			continue
		}
		h.does(h, s, m)
	}
}

func (h *hostile) say(s network.Stream, m *pb.Message) {
	b, _ := proto.Marshal(m)
	s.Write(append(protowire.AppendVarint(nil, uint64(len(b))), b...))
}

// friends are the servers that it names in its answers.
func (h *hostile) friends() (all []*pb.Message_Peer) {
	h.gang.mu.Lock()
	defer h.gang.mu.Unlock()
	for _, f := range h.gang.all {
		if len(all) < 20 && f != h {
			all = append(all, pb.RawPeerInfosToPBPeers([]peer.AddrInfo{{ID: f.host.ID(), Addrs: f.host.Addrs()}})...)
		}
	}
	return all
}

// nobody is a peer that is not there.
func nobody() *pb.Message_Peer {
	p, err := peer.Decode(identity.New().ID().PeerID())
	if err != nil {
		panic(err)
	}
	return &pb.Message_Peer{Id: []byte(p), Addrs: [][]byte{ma.StringCast("/ip4/127.0.0.1/tcp/1").Bytes()}}
}

// values answers for a value with one, and for the rest as one who knows nothing.
func values(value func(key string) []byte) misdeed {
	return func(h *hostile, s network.Stream, m *pb.Message) {
		a := &pb.Message{Type: m.Type, Key: m.Key, CloserPeers: h.friends()}
		if m.Type == pb.Message_GET_VALUE {
			a.Record = &recpb.Record{Key: m.Key, Value: value(string(m.Key))}
		}
		h.say(s, a)
	}
}

// misdeeds returns the attacks of hostile servers. Stale records are those of the sites.
func misdeeds(stale map[string][]byte, victims []peer.ID) map[string]misdeed {
	says := func(change func(h *hostile, s network.Stream, a *pb.Message)) misdeed {
		return func(h *hostile, s network.Stream, m *pb.Message) {
			a := &pb.Message{Type: m.Type, Key: m.Key, CloserPeers: h.friends()}
			change(h, s, a)
			h.say(s, a)
		}
	}
	raw := func(b ...byte) misdeed { return func(_ *hostile, s network.Stream, _ *pb.Message) { s.Write(b) } }
	foreign := discoverytest.Record(identity.New(), 1<<60).Bytes()
	return map[string]misdeed{
		"forged": values(func(key string) []byte {
			b := slices.Clone(stale[key])
			if len(b) > 0 {
				b[len(b)/2] ^= 1
			}
			return b
		}),
		"stale":   values(func(key string) []byte { return stale[key] }),
		"foreign": values(func(string) []byte { return foreign }),
		"empty":   values(func(string) []byte { return nil }),
		"long":    values(func(string) []byte { return make([]byte, 1<<18) }),
		"another key": says(func(_ *hostile, _ network.Stream, a *pb.Message) {
			a.Record = &recpb.Record{Key: []byte("/agentsite/x"), Value: foreign}
		}),
		"no record": says(func(*hostile, network.Stream, *pb.Message) {}), // which ends the library when it put a value
		"nobodies": says(func(_ *hostile, _ network.Stream, a *pb.Message) {
			for range 100 {
				a.ProviderPeers = append(a.ProviderPeers, nobody())
			}
		}),
		"themselves": says(func(h *hostile, _ network.Stream, a *pb.Message) { a.ProviderPeers = h.friends() }),
		"elsewhere": says(func(_ *hostile, _ network.Stream, a *pb.Message) { // the sites are there, but not there
			for _, v := range victims {
				n := nobody()
				n.Id = []byte(v)
				a.ProviderPeers = append(a.ProviderPeers, n)
				a.CloserPeers = append(a.CloserPeers, n)
			}
			a.CloserPeers = a.CloserPeers[:min(len(a.CloserPeers), maxCloser)]
		}),
		"never ends": says(func(_ *hostile, _ network.Stream, a *pb.Message) {
			a.CloserPeers = nil
			for range maxCloser {
				a.CloserPeers = append(a.CloserPeers, nobody())
			}
		}),
		"huge": says(func(_ *hostile, _ network.Stream, a *pb.Message) {
			a.CloserPeers = slices.Repeat([]*pb.Message_Peer{nobody()}, 20000)
		}),
		"nameless": says(func(_ *hostile, _ network.Stream, a *pb.Message) {
			odd := []*pb.Message_Peer{{}, {Id: []byte{}}, {Id: []byte("x")}, {Id: make([]byte, 1000)}, {Addrs: [][]byte{{}, {0}, {0xff}}}}
			a.CloserPeers, a.ProviderPeers = odd, odd
		}),
		"you": says(func(_ *hostile, s network.Stream, a *pb.Message) {
			a.CloserPeers = []*pb.Message_Peer{{Id: []byte(s.Conn().RemotePeer()), Addrs: [][]byte{s.Conn().RemoteMultiaddr().Bytes()}}}
			a.ProviderPeers = a.CloserPeers
		}),
		"another type": says(func(_ *hostile, _ network.Stream, a *pb.Message) { a.Type = (a.Type + 1) % 6 }),
		"unknown type": says(func(_ *hostile, _ network.Stream, a *pb.Message) { a.Type = -7 }),
		"swallows":     func(_ *hostile, s network.Stream, _ *pb.Message) { s.Close() },
		"stalls":       func(h *hostile, _ network.Stream, _ *pb.Message) { <-h.end },
		"drips": func(h *hostile, s network.Stream, _ *pb.Message) {
			s.Write([]byte{0xff, 0x7f})
			for tick := time.NewTicker(50 * time.Millisecond); ; {
				select {
				case <-h.end:
					return
				case <-tick.C:
					if _, err := s.Write([]byte{0}); err != nil {
						return
					}
				}
			}
		},
		"resets":        func(_ *hostile, s network.Stream, _ *pb.Message) { s.Reset() },
		"malformed":     raw(5, 0xff, 0xff, 0xff, 0xff, 0xff),
		"too long":      raw(0xff, 0xff, 0xff, 0xff, 0x7f),
		"no length":     raw(bytes.Repeat([]byte{0xff}, 20)...),
		"cut":           raw(100, 8, 0),
		"nothing in it": raw(0),
		"empty members": raw(6, 8, 3, 0x42, 0, 0x4a, 0),
	}
}

// TestPoison: most servers are hostile, in every known way. No false site is accepted, each site is
// found by its key, and some by their capabilities (a stalling server can end a lookup early).
// Neighbours and known sites are reached as without a DHT, and no program crashes.
func TestPoison(t *testing.T) {
	n := newNet(t, 5)
	home, public := realm(t, "home"), discovery.PublicRealm()
	stale := make(map[string][]byte)
	var sites []*node
	var keys []identity.Key
	var victims []peer.ID
	for range 6 {
		key := identity.New()
		p, err := peer.Decode(key.ID().PeerID())
		if err != nil {
			t.Fatal(err)
		}
		keys, victims = append(keys, key), append(victims, p)
		stale[keyOf(p)] = discoverytest.Record(key, 1).Bytes()
	}
	all := new(gang)
	bad := make(map[string]*hostile)
	does := misdeeds(stale, victims)
	for name := range does {
		bad[name] = n.hostile(all, does[name])
	}
	for _, name := range []string{"no record", "elsewhere", "forged", "stalls"} { // the worst ones twice
		n.hostile(all, does[name])
	}
	if len(all.all) < 30 {
		t.Fatalf("only %d servers are hostile", len(all.all))
	}
	t.Logf("%d hostile servers beside %d honest ones", len(all.all), len(n.servers))
	// Of those that are known, two of three are hostile.
	n.known = []peer.AddrInfo{n.known[0], bad["elsewhere"].at(), bad["stalls"].at()}

	start := time.Now()
	of := func(i int) discovery.Realm { return []discovery.Realm{home, public}[i%2] }
	var announcing sync.WaitGroup
	for i, key := range keys {
		r := discoverytest.Record(key, current)
		m := n.open(key, Options{Realm: of(i)})
		t.Cleanup(m.show(of(i), r, "switch"))
		m.announced.Store(r)
		sites = append(sites, m)
	}
	for i, m := range sites {
		announcing.Go(func() {
			if _, _, err := m.announce(t.Context(), m.announced.Load(), selectAddrs(m.host.Addrs())); err != nil {
				t.Logf("site %d: %v", i, err) // not all take it
			}
		})
	}
	announcing.Wait()
	t.Logf("announced after %v", time.Since(start).Round(time.Millisecond))
	var looking sync.WaitGroup
	for i, r := range []discovery.Realm{home, public} {
		var mine []*node
		for j := i; j < len(sites); j += 2 {
			mine = append(mine, sites[j])
			looks := n.open(identity.New(), Options{Realm: r})
			looking.Go(func() { looks.reach(t, sites[j]) })
		}
		looks := n.open(identity.New(), Options{Realm: r})
		looking.Go(func() {
			start := time.Now()
			found := looks.lookup(t, "switch")
			t.Logf("%d of %d found in %s, %d requests, %v", len(found), len(mine), r.Name, looks.Requests(), time.Since(start).Round(time.Millisecond))
			for _, id := range found {
				if !slices.Contains(ids(mine...), id) {
					t.Errorf("%v is found, which is no site of %s", id, r.Name)
				}
			}
			if len(found) == 0 {
				t.Errorf("nobody is found in %s", r.Name)
			}
		})
	}
	looking.Wait()
	n.neighbours(sites)
	n.again(sites)
}

// neighbours: sites on this network are seen there all along, whatever the DHT says about them.
func (n *net) neighbours(sites []*node) {
	t := n.t
	air := new(discoverytest.Air)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	for _, s := range sites {
		working.Go(func() { air.Announce(ctx, s.announced.Load()) })
	}
	looks := n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
	d := discovery.NewDirectory(slog.New(slog.DiscardHandler), map[string]discovery.Medium{"lan": air, "dht": looks})
	working.Go(func() { d.Run(ctx) })
	missing := make(map[identity.ID]bool)
	for _, id := range ids(sites...) {
		missing[id] = true
	}
	seen, enough := context.WithCancel(ctx) // they go on announcing: who ends that is gone
	defer enough()
	d.Watch(seen, func(_ discovery.Change, s discovery.Site) {
		if delete(missing, s.Site); len(missing) == 0 {
			enough()
		}
	})
	there := 0
	for _, s := range d.Sites() {
		if slices.Contains(ids(sites...), s.Site) && s.Sequence == current && slices.Contains(s.Media, "lan") {
			there++
		} else {
			t.Errorf("%v is no site, and is in the directory as of %q", s.Site, s.Media)
		}
	}
	if t.Logf("%d of %d neighbours", there, len(sites)); there != len(sites) {
		t.Error("neighbours are missing")
	}
}

// again: a client that knows the last addresses of sites reaches them all, after a lookup of each.
func (n *net) again(sites []*node) {
	t := n.t
	looks := n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
	reached := 0
	for _, s := range sites {
		last := s.host.Addrs()[0].String()
		_, _ = looks.located(t.Context(), s.key.ID()) // whatever it says
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := looks.host.Reach(ctx, s.key.ID(), []string{last}); err != nil {
			t.Error(err)
		} else if reached++; looks.host.Network().Connectedness(s.host.ID()) != network.Connected {
			t.Error("it is not connected")
		}
		cancel()
	}
	if t.Logf("%d of %d that are known", reached, len(sites)); reached != len(sites) {
		t.Error("not all that are known are reached")
	}
}

// reach sees that a site is reached where it is said to be.
func (m *node) reach(t *testing.T, site *node) {
	start := time.Now()
	at, err := m.located(t.Context(), site.key.ID())
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("%d addresses after %v", len(at), time.Since(start).Round(time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var texts []string
	for _, a := range at {
		texts = append(texts, a.String())
	}
	if err := m.host.Reach(ctx, site.key.ID(), texts); err != nil {
		t.Errorf("it is not at %v: %v", at, err)
	}
	if b, _ := m.library.GetValue(ctx, keyOf(site.host.ID())); b != nil {
		if _, err := open(keyOf(site.host.ID()), b); err != nil {
			t.Errorf("a value that is no record of the site: %v", err)
		}
	}
}

// TestEachAlone: a client that knows only one hostile server gets nothing from it, in little time.
func TestEachAlone(t *testing.T) {
	key := identity.New()
	p, err := peer.Decode(key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	stale := map[string][]byte{keyOf(p): discoverytest.Record(key, 1).Bytes()}
	for name, does := range misdeeds(stale, []peer.ID{p}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNet(t, 0)
			n.known, n.patience = []peer.AddrInfo{n.hostile(new(gang), does).at()}, time.Second/2
			m := n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, do := range []func(){
				func() { _, _, _ = m.announce(ctx, discoverytest.Record(m.key, 1), m.host.Addrs()) }, // it may say that it took it
				func() {
					if err := m.messenger.PutValue(ctx, n.known[0].ID, record.MakePutRecord(keyOf(m.self), []byte("x"))); err == nil {
						t.Error("it stored what is no record")
					}
				},
				func() {
					_ = m.Lookup(ctx, "switch", func(s discovery.Sighting) error {
						t.Errorf("%v is found", s.Site)
						return nil
					})
				},
				func() { _, _ = m.located(ctx, key.ID()) },
				func() {
					if b, _ := m.library.GetValue(ctx, keyOf(p)); b != nil && !bytes.Equal(b, stale[keyOf(p)]) {
						t.Error("a value is taken that is no record")
					}
				},
			} {
				m.sender.mu.Lock()
				m.sender.backoffs.Purge()
				m.sender.mu.Unlock()
				if err := m.contact(ctx, n.known[0]); err != nil {
					t.Error(err)
				}
				do()
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it holds up for %v", took)
			}
		})
	}
}

// TestStock: the library's own sender ends the program where ours does not. If it does so
// no more, ours can become smaller.
func TestStock(t *testing.T) {
	const role = "AGENTSITE_STOCK"
	if os.Getenv(role) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestStock$")
		cmd.Env = append(os.Environ(), role+"=1")
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("nil pointer")) {
			t.Errorf("the library lives on: %v\n%s", err, out)
		}
		return
	}
	n := newNet(t, 0)
	h := n.hostile(new(gang), misdeeds(nil, nil)["no record"])
	victim := free(t)
	lib, err := kad.New(victim, kad.ProtocolPrefix(Prefix), kad.Mode(kad.ModeClient), kad.Validator(record.NamespacedValidator{namespace: validator{}}))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	if err := victim.Connect(t.Context(), h.at()); err != nil {
		t.Fatal(err)
	}
	if _, err := lib.RoutingTable().TryAddPeer(h.host.ID(), true, false); err != nil {
		t.Fatal(err)
	}
	key := identity.New()
	p, err := peer.Decode(key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	_ = lib.PutValue(t.Context(), keyOf(p), discoverytest.Record(key, 1).Bytes())
}
