package discovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"

	"pgregory.net/rapid"
)

var quiet = slog.New(slog.DiscardHandler)

func seen(r *discovery.Signed, lasts time.Duration, at ...string) discovery.Sighting {
	s := discovery.Sighting{Site: r.Site, Record: r.Bytes(), For: lasts}
	for _, a := range at {
		s.At = append(s.At, netip.MustParseAddr(a))
	}
	return s
}

// withTwoMedia runs a test in a bubble, with a directory of two fake media.
func withTwoMedia(t *testing.T, test func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air)) {
	synctest.Test(t, func(t *testing.T) {
		lan, far := new(discoverytest.Air), new(discoverytest.Air)
		d := discovery.NewDirectory(quiet, map[string]discovery.Medium{"lan": lan, "far": far})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		synctest.Wait()
		test(t, d, lan, far)
		cancel()
		<-done
	})
}

// told records the events of a watcher.
type told struct {
	t     *testing.T
	heard chan string
}

func watch(t *testing.T, d *discovery.Directory) *told {
	w := &told{t, make(chan string, 1000)}
	go d.Watch(t.Context(), func(c discovery.Change, s discovery.Site) {
		w.heard <- fmt.Sprintf("%s %d %v", c, s.Sequence, s.At)
	})
	return w
}

func (w *told) expect(want ...string) {
	w.t.Helper()
	synctest.Wait()
	var heard []string
	for len(w.heard) > 0 {
		heard = append(heard, <-w.heard)
	}
	if !slices.Equal(heard, want) {
		w.t.Errorf("told %q, want %q", heard, want)
	}
}

func TestGone(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air) {
		key, w := identity.New(), watch(t, d)
		r := discoverytest.Record(key, 1)
		lan.Send(seen(r, 10*time.Second, "192.0.2.1"))
		w.expect("appeared 1 [192.0.2.1]")
		time.Sleep(9 * time.Second)
		w.expect()
		lan.Send(seen(r, 10*time.Second, "192.0.2.1")) // as it was
		w.expect()
		time.Sleep(10*time.Second - time.Nanosecond)
		w.expect()
		time.Sleep(time.Nanosecond)
		w.expect("gone 1 [192.0.2.1]")

		lan.Send(seen(r, time.Minute))
		w.expect("appeared 1 [192.0.2.1]")
		far.Send(seen(r, time.Minute, "198.51.100.1"))
		w.expect("changed 1 [198.51.100.1 192.0.2.1]")
		if s := d.Sites(); len(s) != 1 || !slices.Equal(s[0].Media, []string{"far", "lan"}) {
			t.Errorf("%+v", s)
		}
		lan.Send(discovery.Sighting{Site: key.ID()})
		w.expect() // it is far yet
		far.Send(discovery.Sighting{Site: key.ID()})
		w.expect("gone 1 [198.51.100.1 192.0.2.1]")

		lan.Send(seen(r, time.Minute))
		w.expect("appeared 1 [198.51.100.1 192.0.2.1]")
		lan.Send(discovery.Sighting{Site: identity.New().ID()})
		lan.Send(discovery.Sighting{Site: key.ID()})
		w.expect("gone 1 [198.51.100.1 192.0.2.1]")
		lan.Send(seen(r, time.Minute))
		w.expect("appeared 1 [198.51.100.1 192.0.2.1]")
		if n := d.Ignored(); n != (discovery.Ignored{}) {
			t.Errorf("%+v", n)
		}
	})
}

// TestPlayedBack: a replayed message of a neighbour says no more than the original, and for no
// longer.
func TestPlayedBack(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air) {
		key, w := identity.New(), watch(t, d)
		old, r := discoverytest.Record(key, 1), discoverytest.Record(key, 2)
		lan.Send(seen(r, time.Minute))
		lan.Send(seen(old, time.Minute))
		other := r.Record
		other.Name = "elsewhere"
		different, err := other.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		lan.Send(seen(different, time.Minute))
		w.expect("appeared 2 []")
		if n := d.Ignored(); n != (discovery.Ignored{Replayed: 2}) {
			t.Errorf("%+v", n)
		}
		for range 4 * 60 { // for much longer than it holds, while the site is off
			time.Sleep(30 * time.Second)
			lan.Send(seen(r, time.Minute))
			far.Send(seen(old, time.Minute))
		}
		w.expect("gone 2 []")
		if n := d.Ignored(); n.Expired != 121 || n.Replayed != 242 {
			t.Errorf("%+v", n)
		}
		lan.Send(seen(discoverytest.Record(key, 3), time.Minute))
		w.expect("appeared 3 []")
	})
}

func TestIgnored(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, _ *discoverytest.Air) {
		key := identity.New()
		r := discoverytest.Record(key, 1)
		forged := bytes.Clone(r.Bytes())
		forged[len(forged)-1] ^= 1
		site := func(b []byte) discovery.Sighting {
			return discovery.Sighting{Site: key.ID(), Record: b, For: time.Minute}
		}
		lan.Send(site(forged))
		lan.Send(discovery.Sighting{Site: identity.New().ID(), Record: r.Bytes(), For: time.Minute})
		lan.Send(site([]byte{}))
		lan.Send(site(make([]byte, 2000)))
		lan.Send(site(r.Bytes()[:50]))
		if n := d.Ignored(); n != (discovery.Ignored{Forged: 2, Malformed: 2, Oversized: 1}) {
			t.Errorf("%+v", n)
		}
		if s := d.Sites(); len(s) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOffer: a short form and a whole one are one record, in either order.
func TestOffer(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air) {
		key, w := identity.New(), watch(t, d)
		r := discoverytest.Record(key, 1).Record
		r.Offer = []discovery.Kind{{Kind: "switch", Points: []string{"lamp"}}}
		whole, err := r.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		short := discovery.Sighting{Site: r.Site, Record: whole.Short(), For: time.Minute}
		lan.Send(short)
		w.expect("appeared 1 []")
		spoiled := bytes.Clone(whole.Bytes())
		spoiled[len(spoiled)-1] ^= 1
		far.Send(discovery.Sighting{Site: r.Site, Record: spoiled, For: time.Minute})
		w.expect()
		signature := whole.Short()[len(whole.Short())-64:]
		unsigned := bytes.Replace(whole.Bytes(), signature, make([]byte, 64), 1)
		far.Send(discovery.Sighting{Site: r.Site, Record: unsigned, For: time.Minute}) // what counts was signed
		w.expect("changed 1 []")
		far.Send(seen(whole, time.Minute))
		lan.Send(short)
		w.expect()
		if s := d.Sites(); len(s) != 1 || !bytes.Equal(s[0].Bytes(), whole.Bytes()) {
			t.Errorf("%+v", s)
		}
	})
}

// TestAddressesAreBounded: the first of a medium are kept.
func TestAddressesAreBounded(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, _ *discoverytest.Air) {
		var at []string
		for n := range 100 {
			at = append(at, fmt.Sprintf("192.0.2.%d", n))
		}
		lan.Send(seen(discoverytest.Record(identity.New(), 1), time.Minute, at...))
		if s := d.Sites(); len(s) != 1 || len(s[0].At) != 8 || s[0].At[0].String() != at[0] || s[0].At[7].String() != at[7] {
			t.Errorf("%+v", s)
		}
	})
}

// TestAddressesMove: watchers are told of addresses that a medium reports no more, and of another
// order, at once. What another medium reports stays, and what is repeated is no change.
func TestAddressesMove(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air) {
		r, w := discoverytest.Record(identity.New(), 1), watch(t, d)
		for _, step := range []struct {
			air  *discoverytest.Air
			at   []string
			want []string
		}{
			{lan, []string{"192.0.2.2"}, []string{"appeared 1 [192.0.2.2]"}},
			{lan, []string{"192.0.2.50"}, []string{"changed 1 [192.0.2.50]"}},
			{lan, []string{"192.0.2.2"}, []string{"changed 1 [192.0.2.2]"}},
			{lan, nil, nil},
			{far, []string{"198.51.100.1"}, []string{"changed 1 [198.51.100.1 192.0.2.2]"}},
			{lan, []string{"192.0.2.2"}, nil},
			{lan, []string{"192.0.2.51", "192.0.2.2"}, []string{"changed 1 [192.0.2.51 192.0.2.2 198.51.100.1]"}},
			{lan, []string{"192.0.2.2", "192.0.2.51"}, []string{"changed 1 [192.0.2.2 192.0.2.51 198.51.100.1]"}},
			{far, []string{"198.51.100.1"}, nil},
			{far, []string{"192.0.2.51"}, []string{"changed 1 [192.0.2.51 192.0.2.2]"}},
		} {
			step.air.Send(seen(r, time.Minute, step.at...))
			w.expect(step.want...)
		}
	})
}

// TestFlood: 10,000 sites that somebody made up push nobody out, and take no more
// memory than the bound allows.
func TestFlood(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, _ *discoverytest.Air) {
		early, mine, late := identity.New(), identity.New(), identity.New()
		d.Pin(mine.ID())
		lan.Send(seen(discoverytest.Record(early, 1), time.Hour))
		before := heap()
		for n := range 10_000 {
			if n%50 == 0 {
				time.Sleep(10 * time.Second) // so that all could be verified
			}
			lan.Send(seen(discoverytest.Record(identity.New(), 1), time.Hour, "192.0.2.1"))
		}
		grew := heap() - before
		t.Logf("%d KiB for %d sites, %+v", grew>>10, len(d.Sites()), d.Ignored())
		if grew > 2<<20 {
			t.Errorf("memory grew by %d bytes", grew)
		}
		lan.Send(seen(discoverytest.Record(mine, 1), time.Hour))
		lan.Send(seen(discoverytest.Record(late, 1), time.Hour))
		there := make(map[identity.ID]bool)
		for _, s := range d.Sites() {
			there[s.Site] = true
		}
		if len(there) != discovery.MaxSites+1 || !there[early.ID()] || !there[mine.ID()] || there[late.ID()] {
			t.Errorf("%d sites: early %v, mine %v, late %v", len(there), there[early.ID()], there[mine.ID()], there[late.ID()])
		}
		if n := d.Ignored(); n != (discovery.Ignored{Full: 10_000 - discovery.MaxSites + 1 + 1}) {
			t.Errorf("%+v", n)
		}
		time.Sleep(time.Hour)
		lan.Send(seen(discoverytest.Record(late, 1), time.Hour))
		if s := d.Sites(); len(s) != 1 || s[0].Site != late.ID() {
			t.Errorf("%d sites are there when the flood is over", len(s))
		}
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestForgedFlood: forging what a known site could say does not keep the directory from
// hearing it, nor strangers.
func TestForgedFlood(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, _ *discoverytest.Air) {
		mine := identity.New()
		d.Pin(mine.ID())
		lan.Send(seen(discoverytest.Record(mine, 1), time.Hour))
		forged := bytes.Clone(discoverytest.Record(mine, 2).Bytes())
		forged[len(forged)-1] ^= 1
		for range 1000 {
			lan.Send(discovery.Sighting{Site: mine.ID(), Record: forged, For: time.Hour})
		}
		lan.Send(seen(discoverytest.Record(mine, 1), time.Hour, "192.0.2.9")) // which is known: nothing to verify
		lan.Send(seen(discoverytest.Record(identity.New(), 1), time.Hour))
		if s := d.Sites(); len(s) != 2 {
			t.Errorf("%d sites", len(s))
		}
		if n := d.Ignored(); n.Forged != discovery.MaxSites-1 || n.Forged+n.Full != 1000 {
			t.Errorf("%+v", n)
		}
		time.Sleep(time.Second)
		lan.Send(seen(discoverytest.Record(mine, 2), time.Hour))
		if n := d.Ignored(); n.Replayed+n.Forged+n.Full != 1000 {
			t.Errorf("%+v", n)
		}
	})
}

// TestWatchers: a watcher that does not return from emit blocks nobody, and gets the final state.
func TestWatchers(t *testing.T) {
	withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, _ *discoverytest.Air) {
		key, quick := identity.New(), watch(t, d)
		var slow []string
		stuck := make(chan struct{})
		go d.Watch(t.Context(), func(c discovery.Change, s discovery.Site) {
			slow = append(slow, fmt.Sprint(c, s.Sequence))
			<-stuck
		})
		lan.Send(seen(discoverytest.Record(key, 1), time.Hour))
		quick.expect("appeared 1 []")
		for n := uint64(2); n < 100; n++ {
			lan.Send(seen(discoverytest.Record(key, n), time.Hour))
			quick.expect(fmt.Sprintf("changed %d []", n))
		}
		close(stuck)
		synctest.Wait()
		if want := []string{"appeared1", "changed99"}; !slices.Equal(slow, want) {
			t.Errorf("%q, want %q", slow, want)
		}
	})
}

// broken is a medium that works for a while and fails.
type broken struct {
	works time.Duration
	tries int
}

func (b *broken) Announce(context.Context, *discovery.Signed) error { return errors.New("no network") }
func (b *broken) Find(ctx context.Context, _ func(discovery.Sighting) error) error {
	b.tries++
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(b.works):
		return errors.New("no network")
	}
}

// TestBrokenMedium: a failing medium is tried ever less often and does not affect the others. A
// medium that has worked is tried again soon.
func TestBrokenMedium(t *testing.T) {
	for works, want := range map[time.Duration]int{0: 35, 2 * time.Minute: 15} { // in half an hour
		synctest.Test(t, func(t *testing.T) {
			air, b := new(discoverytest.Air), &broken{works: works}
			d := discovery.NewDirectory(quiet, map[string]discovery.Medium{"air": air, "broken": b})
			go d.Run(t.Context())
			synctest.Wait()
			air.Send(seen(discoverytest.Record(identity.New(), 1), 2*time.Hour))
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if len(d.Sites()) != 1 || b.tries != want {
				t.Errorf("%d sites, %d tries, want %d", len(d.Sites()), b.tries, want)
			}
		})
	}
}

// TestAggregate: a directory is a medium, and keeps what one promises.
func TestAggregate(t *testing.T) {
	air := new(discoverytest.Air)
	discoverytest.Run(t, 5*time.Second, func(t *testing.T, _ identity.Key) discovery.Medium {
		d := discovery.NewDirectory(quiet, map[string]discovery.Medium{"air": air})
		go d.Run(t.Context())
		return d
	})
}

func TestURLs(t *testing.T) {
	key := identity.New()
	r := discoverytest.Record(key, 1).Record
	r.Addresses = []string{"https://192.0.2.1:8473/mcp", "http://" + discovery.HostName(key.ID()) + ":8473/mcp", "https://" + discovery.HostName(key.ID()) + "/mcp"}
	signed, err := r.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	s := discovery.Site{Signed: signed, At: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("fe80::1%eth0")}}
	want := []string{
		"https://192.0.2.1:8473/mcp", "http://192.0.2.2:8473/mcp", "http://[fe80::1%25eth0]:8473/mcp", "https://192.0.2.2/mcp", "https://[fe80::1%25eth0]/mcp",
	}
	if got := s.URLs(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestModel holds the directory to a plain account of what was said of three sites.
func TestModel(t *testing.T) {
	keys := []identity.Key{identity.New(), identity.New(), identity.New()}
	records := make(map[int][]*discovery.Signed)
	for i, k := range keys {
		for n := range uint64(4) {
			records[i] = append(records[i], discoverytest.Record(k, n+1))
		}
	}
	const lifetime = time.Hour // of these records
	type account struct {
		sequence int
		first    time.Time
		lan, far time.Time // until when each confirms it
	}
	rapid.Check(t, func(rt *rapid.T) {
		withTwoMedia(t, func(t *testing.T, d *discovery.Directory, lan, far *discoverytest.Air) {
			model := make([]account, len(keys))
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				i := rapid.IntRange(0, len(keys)-1).Draw(rt, "site")
				a, air := &model[i], lan
				until := &a.lan
				if rapid.Bool().Draw(rt, "far") {
					air, until = far, &a.far
				}
				now := time.Now()
				switch rapid.SampledFrom([]string{"see", "see", "goodbye", "wait"}).Draw(rt, "what") {
				case "see":
					n := rapid.IntRange(1, 4).Draw(rt, "sequence")
					lasts := time.Duration(rapid.IntRange(1, 90).Draw(rt, "for")) * time.Minute
					air.Send(seen(records[i][n-1], lasts))
					if n > a.sequence {
						a.sequence, a.first = n, now
					}
					if n == a.sequence && now.Sub(a.first) < lifetime {
						*until = now.Add(min(lasts, lifetime))
					}
				case "goodbye":
					air.Send(discovery.Sighting{Site: keys[i].ID()})
					*until = time.Time{}
				case "wait":
					time.Sleep(time.Duration(rapid.IntRange(1, 60).Draw(rt, "minutes")) * time.Minute)
				}
				there := make(map[identity.ID]uint64)
				for _, s := range d.Sites() {
					there[s.Site] = s.Sequence
				}
				for i, a := range model {
					now := time.Now()
					want := uint64(0)
					if (a.lan.After(now) || a.far.After(now)) && now.Sub(a.first) < lifetime {
						want = uint64(a.sequence)
					}
					if there[keys[i].ID()] != want {
						rt.Fatalf("site %d has the record %d, want %d", i, there[keys[i].ID()], want)
					}
				}
			}
		})
	})
}
