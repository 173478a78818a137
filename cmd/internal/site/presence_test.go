package site

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/things"
	"agentsite/cmd/internal/internet"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
)

// announced is a site's presence in a medium in memory, and who hears of it.
type announced struct {
	*presence
	t      *testing.T
	others *discovery.Directory
	slept  atomic.Int64
	sure   atomic.Bool
}

func announceOn(t *testing.T, folder state.Folder, key identity.Key, air *discoverytest.Air, others *discovery.Directory) *announced {
	t.Helper()
	a := &announced{t: t, others: others}
	book, err := access.NewStore(access.Options{Site: key.ID(), SystemClock: func() (time.Time, bool) { return time.Now(), a.sure.Load() }})
	if err != nil {
		t.Fatal(err)
	}
	a.presence = present(folder, key, &config.Site{Name: "garden"}, book, nil, func() []things.Thing { return nil })
	a.https = "https://192.0.2.1:8474/mcp"
	a.presence.slept = func() time.Duration { return time.Duration(a.slept.Load()) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.announce(ctx, func(bool) *discovery.Directory {
			return discovery.NewDirectory(slog.New(slog.DiscardHandler), map[string]discovery.Medium{"air": air})
		}, nil)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return a
}

// is waits for what is under way and returns the sequence that others know, 0 for none.
func (a *announced) is() uint64 {
	synctest.Wait()
	s, _ := a.others.Site(a.key.ID())
	if s.Signed == nil {
		return 0
	}
	return s.Sequence
}

func hearing(t *testing.T) (*discoverytest.Air, *discovery.Directory) {
	air := new(discoverytest.Air)
	others := discovery.NewDirectory(slog.New(slog.DiscardHandler), map[string]discovery.Medium{"air": air})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		others.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
	return air, others
}

// TestSlept: a board that slept, while its timers stood still, has another record within a
// minute of waking where the last has become old.
func TestSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		a := announceOn(t, state.Folder(t.TempDir()), identity.New(), air, others)
		first := a.is()
		a.slept.Store(int64(time.Hour))
		time.Sleep(2 * time.Minute)
		if now := a.is(); first == 0 || now != first {
			t.Errorf("after an hour's sleep the record is %d, and was %d", now, first)
		}
		a.slept.Store(int64(30 * time.Hour))
		time.Sleep(2 * time.Minute)
		if now := a.is(); now <= first {
			t.Errorf("after a sleep of 30 h the record is %d, and was %d", now, first)
		}
	})
}

// TestClockBecomesSure: a site that did not know the time is announced anew once it does,
// within a minute.
func TestClockBecomesSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		a := announceOn(t, state.Folder(t.TempDir()), identity.New(), air, others)
		if first := a.is(); first == 0 || first > 1000 {
			t.Errorf("a site that does not know the time begins with %d", first)
		}
		a.sure.Store(true)
		time.Sleep(2 * time.Minute)
		if now := a.is(); now < uint64(time.Now().Add(-time.Hour).Unix()) {
			t.Errorf("the record is %d", now)
		}
	})
}

// TestGoesBeyond: a site whose record others refuse, for they know a newer one, is heard
// once it is shown that.
func TestGoesBeyond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		key := identity.New()
		newest := discoverytest.Record(key, 5000)
		air.Send(discovery.Sighting{Site: key.ID(), Record: newest.Bytes(), For: time.Hour})
		a := announceOn(t, state.Folder(t.TempDir()), key, air, others)
		if a.is() != 5000 || a.now.Load().Sequence >= 5000 {
			t.Fatalf("the site has %d, and others know %d", a.now.Load().Sequence, a.is())
		}
		a.newer(newest)
		time.Sleep(time.Minute)
		if a.is() != 5001 {
			t.Errorf("others know %d", a.is())
		}
		a.newer(newest) // it is beyond that
		time.Sleep(time.Minute)
		if a.is() != 5001 {
			t.Errorf("others know %d", a.is())
		}
	})
}

// TestDiskTakesNoSequence: a site whose disk takes nothing is announced all the same, each
// time with a newer record.
func TestDiskTakesNoSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		folder := state.Folder(filepath.Join(t.TempDir(), "file"))
		if err := os.WriteFile(string(folder), nil, 0o600); err != nil { // nothing can be written into that
			t.Fatal(err)
		}
		a := announceOn(t, folder, identity.New(), air, others)
		first := a.is()
		time.Sleep(recordEvery + time.Minute)
		if now := a.is(); first == 0 || now <= first {
			t.Errorf("others know %d, and knew %d", now, first)
		}
	})
}

// TestNoDigestWithoutRealm: nobody can guess from a record what a site can do that is of no
// realm: there is no secret to make a digest with.
func TestNoDigestWithoutRealm(t *testing.T) {
	key := identity.New()
	nothing := func([]byte) error { return nil }
	book, err := access.NewStore(access.Options{Site: key.ID(), SaveAccess: nothing, SaveCounts: nothing})
	if err != nil {
		t.Fatal(err)
	}
	if err := state.SeedOwner(book, identity.New().ID().String()); err != nil {
		t.Fatal(err)
	}
	secret, err := discovery.NewRealm("home")
	if err != nil {
		t.Fatal(err)
	}
	all := []things.Thing{{Description: device.Description{Points: []device.Point{{Name: "alarm", Kind: device.KindSwitch}}}}}
	p := present(state.Folder(t.TempDir()), key, &config.Site{Name: "garden"}, book, nil, func() []things.Thing { return all })
	for _, realm := range []discovery.Realm{{}, secret} {
		o := internet.Options{P2P: p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}}
		if realm.Exists() {
			o.Site = &internet.Site{Realm: internet.Realm{Realm: realm}, Card: p.card, Newer: p.newer}
		}
		if p.far, err = internet.Join(o); err != nil {
			t.Fatal(err)
		}
		defer p.far.Close()
		r, err := p.sign(1)
		if err != nil {
			t.Fatal(err)
		}
		if has := r.Digest != [32]byte{}; has != realm.Exists() {
			t.Errorf("of the realm %q: a digest %v", realm.Name, has)
		}
	}
}
