package discoverytest

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

// Refresher is a medium without announcements: it sees new and vanished records only when it
// looks again. Refresh makes it look now.
type Refresher interface {
	discovery.Medium
	Refresh()
}

const refresh = 200 * time.Millisecond // how often it is told to, while something is awaited

// Run tests the contract of discovery.Medium. open returns the medium of a site with that key, or
// of a finder, on the same network as those before in the same test. within is the maximum time to
// find a site or to notice its end.
func Run(t *testing.T, within time.Duration, open func(t *testing.T, key identity.Key) discovery.Medium) {
	for name, test := range map[string]func(*testing.T, *world){
		"announced before": func(t *testing.T, w *world) {
			key := identity.New()
			w.announce(key, 1)
			f := w.find()
			f.await(Record(key, 1))
		},
		"announced after": func(t *testing.T, w *world) {
			key := identity.New()
			f := w.find()
			w.announce(key, 1)
			f.await(Record(key, 1))
		},
		"goodbye": func(t *testing.T, w *world) {
			goes, stays := identity.New(), identity.New()
			f := w.find()
			end := w.announce(goes, 1)
			w.announce(stays, 1)
			f.await(Record(goes, 1), Record(stays, 1))
			end()
			f.awaitGoodbye(goes.ID())
		},
		"another record": func(t *testing.T, w *world) {
			key := identity.New()
			f := w.find()
			end := w.announce(key, 1)
			f.await(Record(key, 1))
			end()
			w.announce(key, 2)
			f.await(Record(key, 2))
		},
		"many, and two who look": func(t *testing.T, w *world) {
			one, two := w.find(), w.find()
			var records []*discovery.Signed
			for range 5 {
				key := identity.New()
				records = append(records, Record(key, 1))
				w.announce(key, 1)
			}
			one.await(records...)
			two.await(records...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, within: within, open: open, sites: make(map[identity.ID]discovery.Medium)}
			w.ctx, w.cancel = context.WithCancel(t.Context())
			defer w.end()
			test(t, w)
		})
	}
}

// Record returns a valid record of a site.
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

// Key is the same in every process, of which fuzzing has several.
func Key() identity.Key {
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		panic(err) // it knows Ed25519
	}
	key, err := identity.ParsePEM(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		panic(err) // as identities are kept
	}
	return key
}

// world is the media of a test, and what they do.
type world struct {
	t      *testing.T
	within time.Duration
	open   func(t *testing.T, key identity.Key) discovery.Medium
	sites  map[identity.ID]discovery.Medium // of those that announce
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

// announce goes on until its end was waited for, or that of all.
func (w *world) announce(key identity.Key, sequence uint64) (end func()) {
	m := w.sites[key.ID()]
	if m == nil {
		m = w.open(w.t, key)
		w.sites[key.ID()] = m
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- m.Announce(ctx, Record(key, sequence)) }()
	w.ended = append(w.ended, done)
	return func() {
		cancel()
		done <- <-done
	}
}

type looker struct {
	w       *world
	seen    chan discovery.Sighting
	refresh func()
}

func (w *world) find() looker {
	l := looker{w, make(chan discovery.Sighting, 1000), func() {}}
	done, m := make(chan error, 1), w.open(w.t, identity.New())
	if r, ok := m.(Refresher); ok {
		l.refresh = r.Refresh
	}
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
	again := time.NewTicker(refresh)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			l.refresh()
		case s := <-l.seen:
			if ok(s) {
				return s, true
			}
		case <-end:
			return discovery.Sighting{}, false
		}
	}
}
