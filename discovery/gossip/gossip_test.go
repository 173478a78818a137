package gossip

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRealm(t testing.TB, name string) discovery.Realm {
	r, err := discovery.NewRealm(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// town is forwarders on this machine, and members who meet there.
type town struct {
	t          testing.TB
	realm      discovery.Realm
	forwarders []*p2p.Host
	every      time.Duration // of announcements; 0 for the usual

	mu      sync.Mutex
	records map[identity.ID]discovery.Sighting // as sites would give them, who are asked
	asked   map[identity.ID]int
}

func newTown(t testing.TB, forwarders int) *town {
	w := &town{t: t, realm: newRealm(t, "home"), records: make(map[identity.ID]discovery.Sighting), asked: make(map[identity.ID]int)}
	for range forwarders {
		h := w.host(identity.New(), &p2p.Relay{})
		w.forward(h, Limits{})
		w.forwarders = append(w.forwarders, h)
	}
	return w
}

func (w *town) host(key identity.Key, relay *p2p.Relay) *p2p.Host {
	h, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Relay: relay})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close() })
	return h
}

func (w *town) forward(h *p2p.Host, l Limits) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Forward(ctx, h, l) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

func (w *town) connect(h *p2p.Host, to ...*p2p.Host) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, f := range to {
		for { // on a busy machine a handshake may take longer than a host waits for it
			err := h.Connect(ctx, peer.AddrInfo{ID: f.ID(), Addrs: f.Addrs()})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				w.t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// member is one of a realm, connected to hosts.
func (w *town) member(key identity.Key, realm discovery.Realm, to ...*p2p.Host) *Medium {
	h := w.host(key, nil)
	m, err := New(Options{Host: h, Realm: realm, Ask: w.ask, Every: w.every})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { m.Close() })
	w.connect(h, to...)
	return m
}

// tells sets the record that a site returns when it is asked.
func (w *town) tells(s discovery.Sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records[s.Site] = s
}

func (w *town) ask(_ context.Context, site identity.ID, _ uint64) (discovery.Sighting, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[site]++
	if s, ok := w.records[site]; ok {
		return s, nil
	}
	return discovery.Sighting{}, errors.New("it does not answer")
}

// speaking is a medium whose sites answer who asks.
type speaking struct {
	*Medium
	w *town
}

func (s speaking) Announce(ctx context.Context, r *discovery.Signed) error {
	s.w.tells(sighting(r))
	return s.Medium.Announce(ctx, r)
}

// sighting is a record as the site gives it to who asks.
func sighting(r *discovery.Signed) discovery.Sighting {
	return discovery.Sighting{Site: r.Site, Record: r.Bytes(), At: loopback}
}

// announce announces a site until the test ends.
func (w *town) announce(m *Medium, key identity.Key) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- speaking{m, w}.Announce(ctx, discoverytest.Record(key, 1)) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// found records the sightings of a member.
type found struct {
	t    testing.TB
	seen chan discovery.Sighting
}

func (w *town) find(m *Medium) found {
	f := found{w.t, make(chan discovery.Sighting, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- m.Find(ctx, func(s discovery.Sighting) error {
			f.seen <- s
			return nil
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	return f
}

// await waits until these sites are seen, and returns how long that took.
func (f found) await(within time.Duration, sites ...identity.ID) time.Duration {
	f.t.Helper()
	start, end := time.Now(), time.After(within)
	missing := make(map[identity.ID]bool)
	for _, id := range sites {
		missing[id] = true
	}
	for len(missing) > 0 {
		select {
		case s := <-f.seen:
			if s.Record != nil {
				delete(missing, s.Site)
			}
		case <-end:
			f.t.Fatalf("%d of %d sites are not found within %v", len(missing), len(sites), within)
		}
	}
	return time.Since(start)
}

func TestMedium(t *testing.T) {
	t.Parallel()
	w := newTown(t, 2)
	members := make(map[identity.ID]*Medium)
	discoverytest.Run(t, 8*time.Second, func(_ *testing.T, of identity.Key) discovery.Medium {
		if members[of.ID()] == nil {
			members[of.ID()] = w.member(of, w.realm, w.forwarders...)
		}
		return speaking{members[of.ID()], w}
	})
}

// TestTwenty measures how long the first message of a new member takes to reach all, with half of
// them at each of two forwarders.
func TestTwenty(t *testing.T) {
	t.Parallel()
	w := newTown(t, 2)
	// Announcements and answers are few. On a busy machine one of many that come at once may miss
	// another, and learns of it by the next announcement.
	w.every = time.Minute
	w.connect(w.forwarders[0], w.forwarders[1])
	var all []found
	var sites []identity.ID
	for i := range 20 {
		key := identity.New()
		m := w.member(key, w.realm, w.forwarders[i%2])
		w.announce(m, key)
		all, sites = append(all, w.find(m)), append(sites, key.ID())
	}
	for _, f := range all {
		f.await(3*w.every, sites...)
	}
	key := identity.New()
	m := w.member(key, w.realm, w.forwarders[0])
	start := time.Now()
	w.announce(m, key)
	for _, f := range all {
		f.await(3*w.every, key.ID())
	}
	t.Logf("its first message reached all of 20 after %v", time.Since(start))
	late := w.member(identity.New(), w.realm, w.forwarders[1])
	t.Logf("who joins late, and looks, learns all after %v", w.find(late).await(3*w.every, append(sites, key.ID())...))
}

// TestQueriesAgain: a finder queries again when a peer begins to forward others' messages, because
// it has not received all of their answers.
func TestQueriesAgain(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	looks, key := w.member(identity.New(), w.realm), identity.New()
	site := w.member(key, w.realm, looks.o.Host.(*p2p.Host))
	looked, _ := site.queried.Subscribe()
	w.announce(site, key)
	finds := w.find(looks)
	<-looked
	finds.await(time.Minute, key.ID())
	looks.Trace(&pb.TraceEvent{Type: pb.TraceEvent_GRAFT.Enum()})
	select {
	case <-looked:
	case <-time.After(time.Minute):
		t.Error("it does not look again")
	}
}

var loopback = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
