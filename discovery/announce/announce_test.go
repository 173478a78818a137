package announce

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// announced is an announcer on a medium in memory, and a directory that finds it there.
type announced struct {
	*Announcer
	t      *testing.T
	others *discovery.Directory
	asleep atomic.Int64
	sure   atomic.Bool
}

// announceOn runs an announcer whose sequence is stored with keep.
func announceOn(t *testing.T, keep func(uint64) error, key identity.Key, air *discoverytest.Air, others *discovery.Directory) *announced {
	t.Helper()
	a := &announced{t: t, others: others}
	a.Announcer = New(Options{
		Key: key, Name: "garden", URL: "https://192.0.2.1:8474/mcp", Sequence: discovery.NewSequence(0, keep),
		Claimed: func() bool { return false },
		Now: func() (time.Time, bool) { // since its start, while it does not know the time
			if a.sure.Load() {
				return time.Now(), true
			}
			return time.Unix(1, 0), false
		},
	})
	a.slept = func() time.Duration { return time.Duration(a.asleep.Load()) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx, map[string]discovery.Medium{"air": air}, nil)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return a
}

func stored(uint64) error { return nil }

// is waits for what is under way and returns the sequence that others know, 0 for none.
func (a *announced) is() uint64 {
	synctest.Wait()
	s, _ := a.others.Site(a.Key.ID())
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

// TestSuspended: a board that slept, while its timers stood still, has another record within a
// minute of waking where the last has become old.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		a := announceOn(t, stored, identity.New(), air, others)
		first := a.is()
		a.asleep.Store(int64(time.Hour))
		time.Sleep(2 * time.Minute)
		if now := a.is(); first == 0 || now != first {
			t.Errorf("after an hour's sleep the record is %d, and was %d", now, first)
		}
		a.asleep.Store(int64(30 * time.Hour))
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
		a := announceOn(t, stored, identity.New(), air, others)
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
		a := announceOn(t, stored, key, air, others)
		if a.is() != 5000 || a.current.Load().Sequence >= 5000 {
			t.Fatalf("the site has %d, and others know %d", a.current.Load().Sequence, a.is())
		}
		a.Newer(newest)
		time.Sleep(time.Minute)
		if a.is() != 5001 {
			t.Errorf("others know %d", a.is())
		}
		a.Newer(newest) // it is beyond that
		time.Sleep(time.Minute)
		if a.is() != 5001 {
			t.Errorf("others know %d", a.is())
		}
	})
}

// TestDiskTakesNoSequence: a site whose disk takes no writes is still announced, each time with a
// newer record.
func TestDiskTakesNoSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		a := announceOn(t, func(uint64) error { return errors.New("disk full") }, identity.New(), air, others)
		first := a.is()
		time.Sleep(recordInterval + time.Minute)
		if now := a.is(); first == 0 || now <= first {
			t.Errorf("others know %d, and knew %d", now, first)
		}
	})
}

// fakeNetwork is a site's part in a global network of its own.
type fakeNetwork struct {
	realm   discovery.Realm
	media   map[string]discovery.Medium
	reached chan struct{}
}

func (n fakeNetwork) Realm() discovery.Realm                        { return n.realm }
func (n fakeNetwork) Addresses() []string                           { return []string{"/ip4/192.0.2.1/tcp/8475"} }
func (n fakeNetwork) Media() map[string]discovery.Medium            { return n.media }
func (n fakeNetwork) OnAddressChange(ctx context.Context, _ func()) { <-ctx.Done() }
func (n fakeNetwork) WaitReachable(ctx context.Context) {
	select {
	case <-n.reached:
	case <-ctx.Done():
	}
}

func home(t *testing.T) discovery.Realm {
	t.Helper()
	realm, err := discovery.NewRealm("home")
	if err != nil {
		t.Fatal(err)
	}
	return realm
}

// withAlarm returns the announcer of a claimed site with one switch.
func withAlarm() *Announcer {
	a := New(Options{
		Key: identity.New(), Name: "garden", URL: "https://192.0.2.1:8474/mcp", Public: true, Sequence: discovery.NewSequence(0, stored),
		Claimed: func() bool { return true }, Now: func() (time.Time, bool) { return time.Now(), true },
	})
	a.SetOffer([]Point{{"switch", "alarm"}})
	return a
}

// TestNoDigestWithoutRealm: the record of a site without a realm has no digest of its capabilities,
// which could be guessed: there is no secret to make a digest with.
func TestNoDigestWithoutRealm(t *testing.T) {
	for _, realm := range []discovery.Realm{{}, home(t)} {
		a := withAlarm()
		a.Public, a.network = false, fakeNetwork{realm: realm}
		r, err := a.sign(1)
		if err != nil {
			t.Fatal(err)
		}
		if has := r.Digest != [32]byte{}; has != realm.Exists() {
			t.Errorf("in the realm %q: a digest %v", realm.Name, has)
		}
	}
}

// TestUnclaimed: a site that nobody owns announces that it is there, and none of its points.
func TestUnclaimed(t *testing.T) {
	a := withAlarm()
	for _, claimed := range []bool{true, false} {
		a.Claimed = func() bool { return claimed }
		r, err := a.sign(1)
		if err != nil {
			t.Fatal(err)
		}
		if tells := len(r.Offer) > 0; tells != claimed || len(a.Card().Capabilities) > 0 != claimed {
			t.Errorf("claimed %v: %v, %v", claimed, r.Offer, a.Card().Capabilities)
		}
	}
}

// TestListedAgents: listed capabilities of agents are in a card before the names of points, in the
// public record only if there is one, and nowhere while the site has no owner.
func TestListedAgents(t *testing.T) {
	a := withAlarm()
	listed := []string{"agent/routine", "skill/drip", "skill/irrigation"}
	a.Options.Agents = func() []string { return listed }
	var points []Point
	for i := range 100 {
		points = append(points, Point{"measurement", "p" + strconv.Itoa(i)})
	}
	a.SetOffer(points)
	if all := a.Card().Capabilities; len(all) != maxCapabilities || all[0] != "measurement" || !slices.Equal(all[1:4], listed) {
		t.Errorf("%v", all)
	}
	a.SetOffer([]Point{{"switch", "alarm"}})
	r, err := a.sign(1)
	want := []discovery.Kind{{Kind: "agent", Points: []string{"routine"}}, {Kind: "skill", Points: []string{"drip", "irrigation"}}, {Kind: "switch", Points: []string{"alarm"}}}
	if err != nil || !reflect.DeepEqual(r.Offer, want) {
		t.Errorf("%v, %v", r.Offer, err)
	}
	a.Public = false
	if r, err := a.sign(1); err != nil || r.Offer != nil {
		t.Errorf("%v, %v", r.Offer, err)
	}
	a.network = fakeNetwork{realm: home(t)}
	before, err := a.sign(1)
	if err != nil {
		t.Fatal(err)
	}
	listed = listed[:2]
	if after, err := a.sign(1); err != nil || after.Digest == before.Digest {
		t.Error("others of the realm see no change", err)
	}
	a.Claimed = func() bool { return false }
	if all := a.Card().Capabilities; len(all) != 0 {
		t.Errorf("of an unclaimed site %v", all)
	}
}

// TestReachedLater: the global network's media show the site once others can reach it there.
func TestReachedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		air, others := hearing(t)
		a := withAlarm()
		network := fakeNetwork{home(t), map[string]discovery.Medium{"air": air}, make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.Run(ctx, nil, network)
		}()
		time.Sleep(time.Minute)
		if _, known := others.Site(a.Key.ID()); known {
			t.Error("it is announced although nobody can reach it")
		}
		close(network.reached)
		synctest.Wait()
		if _, known := others.Site(a.Key.ID()); !known {
			t.Error("it is not announced")
		}
		cancel()
		<-ended
	})
}
