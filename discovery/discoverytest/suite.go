package discoverytest

import (
	"context"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

// Run holds a medium to the contract of discovery.Medium. open gives a medium on the same
// way as those before in the same test, on the machine whose key it is given; within is
// the longest that finding and missing may take.
func Run(t *testing.T, within time.Duration, open func(t *testing.T, of identity.Key) discovery.Medium) {
	for name, test := range map[string]func(*testing.T, *world){
		"announced before": func(t *testing.T, w *world) {
			r := w.announce(identity.New(), 1).record
			f := w.find()
			f.await(r)
		},
		"announced after": func(t *testing.T, w *world) {
			f := w.find()
			f.await(w.announce(identity.New(), 1).record)
		},
		"goodbye": func(t *testing.T, w *world) {
			f := w.find()
			leaves, stays := w.announce(identity.New(), 1), w.announce(identity.New(), 1)
			f.await(leaves.record, stays.record)
			leaves.end()
			f.awaitGoodbye(leaves.record.Site)
		},
		"another record": func(t *testing.T, w *world) {
			key := identity.New()
			f := w.find()
			first := w.announce(key, 1)
			f.await(first.record)
			first.end()
			f.await(w.announce(key, 2).record)
		},
		"many, and two who look": func(t *testing.T, w *world) {
			one, two := w.find(), w.find()
			var records []*discovery.Signed
			for range 5 {
				records = append(records, w.announce(identity.New(), 1).record)
			}
			one.await(records...)
			two.await(records...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, within: within, open: open}
			w.ctx, w.cancel = context.WithCancel(t.Context())
			defer w.end()
			test(t, w)
		})
	}
}

// Record is one that a site could announce.
func Record(key identity.Key, sequence uint64) *discovery.Signed {
	s, err := discovery.Record{
		Site: key.ID(), Sequence: sequence, Name: "greenhouse", Lifetime: time.Hour,
		Addresses: []string{"http://" + discovery.HostName(key.ID()) + ":8473/mcp"},
	}.Sign(key)
	if err != nil {
		panic(err) // it is within all bounds
	}
	return s
}

// world is the media of a test, and what they do.
type world struct {
	t      *testing.T
	within time.Duration
	open   func(t *testing.T, of identity.Key) discovery.Medium
	ctx    context.Context
	cancel context.CancelFunc
	ended  []chan error
}

// end ends all, and sees that it ended well.
func (w *world) end() {
	w.cancel()
	for _, done := range w.ended {
		select {
		case err := <-done:
			if err != nil {
				w.t.Errorf("a medium that is told to end says %v", err)
			}
		case <-time.After(w.within):
			w.t.Error("a medium does not end")
		}
	}
}

// announced goes on until its end was waited for, or that of all.
type announced struct {
	record *discovery.Signed
	end    func()
}

func (w *world) announce(key identity.Key, sequence uint64) announced {
	r := Record(key, sequence)
	ctx, cancel := context.WithCancel(w.ctx)
	done, m := make(chan error, 1), w.open(w.t, key)
	go func() { done <- m.Announce(ctx, r) }()
	w.ended = append(w.ended, done)
	return announced{r, func() {
		cancel()
		done <- <-done
	}}
}

type looker struct {
	w    *world
	seen chan discovery.Sighting
}

func (w *world) find() looker {
	l := looker{w, make(chan discovery.Sighting, 1000)}
	done, m := make(chan error, 1), w.open(w.t, identity.New())
	go func() {
		done <- m.Find(w.ctx, func(s discovery.Sighting) error {
			select {
			case l.seen <- s:
			default: // nobody looks any more
			}
			return nil
		})
	}()
	w.ended = append(w.ended, done)
	return l
}

// await waits for records.
func (l looker) await(want ...*discovery.Signed) {
	l.w.t.Helper()
	missing := make(map[identity.ID]uint64)
	for _, r := range want {
		missing[r.Site] = r.Sequence
	}
	_, ok := l.until(func(s discovery.Sighting) bool {
		got, err := discovery.Open(s.Record)
		if err == nil && got.Sequence == missing[got.Site] {
			delete(missing, got.Site)
			if s.Site != got.Site || s.For <= 0 || len(s.At) == 0 {
				l.w.t.Errorf("found as %v, at %v for %v", s.Site, s.At, s.For)
			}
		}
		return len(missing) == 0
	})
	if !ok {
		l.w.t.Fatalf("%d of %d records are not found within %v", len(missing), len(want), l.w.within)
	}
}

func (l looker) awaitGoodbye(site identity.ID) {
	l.w.t.Helper()
	s, ok := l.until(func(s discovery.Sighting) bool { return s.Record == nil })
	if !ok {
		l.w.t.Fatalf("the goodbye of %s is not seen within %v", discovery.Label(site), l.w.within)
	}
	if s.Site != site {
		l.w.t.Errorf("%s said goodbye", discovery.Label(s.Site))
	}
}

func (l looker) until(ok func(discovery.Sighting) bool) (discovery.Sighting, bool) {
	end := time.After(l.w.within)
	for {
		select {
		case s := <-l.seen:
			if ok(s) {
				return s, true
			}
		case <-end:
			return discovery.Sighting{}, false
		}
	}
}
