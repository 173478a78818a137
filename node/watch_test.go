package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// outputs is those of a site with one, lever/arm, of which a test says what it is doing.
type outputs struct {
	*lever
	mu      sync.Mutex
	now     guard.Status
	stopped bool
	changed chan struct{}
}

func (o *outputs) Status() []guard.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	return []guard.Status{o.now}
}

func (o *outputs) StatusOf(output string) (guard.Status, bool) {
	s := o.Status()[0]
	return s, output == s.Output
}

func (o *outputs) Stopped() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stopped
}

func (o *outputs) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

func (o *outputs) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.changed)
	o.changed = make(chan struct{})
}

// watchRig is a desk whose outputs a test bends. It has lever/arm, lever/a, lever/b and an
// event, lever/bell.
type watchRig struct {
	*desk
	outputs *outputs
	hub     *Hub
	follows bool // named points are followed
}

// bothWays makes a test by Watch, and by Follow where points are named.
func bothWays(t *testing.T, test func(t *testing.T, r *watchRig)) {
	for name, follows := range map[string]bool{"watch": false, "follow": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWatchRig()
				r.follows = follows
				test(t, r)
			})
		})
	}
}

func newWatchRig() *watchRig {
	d := newDesk()
	r := &watchRig{d, &outputs{lever: d.lever, now: d.lever.status(), changed: make(chan struct{})}, d.Node.hub, false}
	d.site.Outputs = r.outputs
	d.site.Devices[0].Description.Points = append(d.site.Devices[0].Description.Points, device.Point{Name: "bell", Kind: device.KindEvent})
	d.setSite()
	return r
}

func (r *watchRig) put(point string, v device.Value, period time.Duration) {
	r.hub.put(good("lever/"+point, v), period)
}

// watcher is a Watch that runs. Its updates are sent as text.
type watcher struct {
	told chan string
	hold chan struct{} // when not nil, emit waits for it
	end  func() error
}

func (r *watchRig) watch(t *testing.T, p agents.Principal, q agents.WatchRequest) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := &watcher{told: make(chan string, 1000)}, make(chan error, 1)
	watch := r.Node.Watch
	if r.follows && q.Points != nil && q.Every == 0 {
		watch = r.follow
	}
	go func() {
		ended <- watch(ctx, p, q, func(u agents.Update) error {
			w.told <- brief(u)
			if w.hold != nil {
				<-w.hold
			}
			return nil
		})
	}()
	w.end = func() error {
		synctest.Wait()
		select {
		case err := <-ended:
			cancel()
			return err
		default:
		}
		cancel()
		return <-ended
	}
	return w
}

// follow is Watch by Follow.
func (r *watchRig) follow(ctx context.Context, p agents.Principal, q agents.WatchRequest, emit func(agents.Update) error) error {
	woken := make(chan struct{}, 1)
	next, end, err := r.Node.Follow(p, q, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer end()
	for {
		u, some, due, err := next()
		if err == nil && some {
			err = emit(u)
		}
		if err != nil {
			return err
		}
		var later <-chan time.Time
		if !due.IsZero() {
			later = time.After(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
		case <-later:
		}
	}
}

// brief shows an update in a few words.
func brief(u agents.Update) string {
	var all []string
	if u.Offer {
		all = append(all, "offer")
	}
	for _, r := range u.Readings {
		s := fmt.Sprintf("%s %v", strings.TrimPrefix(r.Point, "lever/"), r.Value)
		if r.Quality != device.Good {
			s += " " + string(r.Quality)
		}
		if r.Age != 0 {
			s += fmt.Sprintf(" %vs ago", r.Age)
		}
		if r.Time != "" {
			s += " at " + r.Time
		}
		if d := r.Detail; d != nil {
			s += fmt.Sprintf(" [%s %v %v %s%s]", d.Holder, d.Left, d.Rest, d.Needs, d.Why)
		}
		all = append(all, s)
	}
	if u.Approvals != nil {
		s := "approvals"
		for _, a := range u.Approvals {
			s += fmt.Sprintf(" %s %s %s %v", a.Caller, a.Tool, a.Args, a.Left)
		}
		all = append(all, s)
	}
	for _, s := range u.Stops {
		all = append(all, fmt.Sprintf("stopped %v", s.Stopped))
	}
	return strings.Join(all, ", ")
}

// next compares all that was told since it was called last.
func (w *watcher) next(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for len(w.told) > 0 {
		got = append(got, <-w.told)
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

const none4 = "arm - stale [ 0 0 ], a - stale, b - stale, bell -"

func TestWatchValues(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		w := r.watch(t, own, agents.WatchRequest{})
		w.next(t, none4+", approvals, stopped false")
		r.put("a", device.Number(1), 10*time.Second)
		w.next(t, "a 1")
		r.put("b", device.Number(2), 0)
		w.next(t, "b 2")
		r.put("a", device.Number(1), 10*time.Second) // the same
		w.next(t)
		r.put("bell", device.Bool(true), 0)
		w.next(t, "bell on")
		time.Sleep(time.Second)
		r.put("bell", device.Bool(true), 0) // every event is a change
		time.Sleep(time.Second)
		r.put("bell", device.Bool(true), 0)
		w.next(t, "bell on", "bell on")
		time.Sleep(20 * time.Second)
		r.put("a", device.Number(1), 10*time.Second)
		time.Sleep(30 * time.Second)
		w.next(t) // put off
		time.Sleep(time.Nanosecond)
		w.next(t, "a 1 stale 30s ago")
		time.Sleep(time.Hour)
		w.next(t)
		r.put("a", device.Number(1), 10*time.Second) // it is back with the same value
		w.next(t, "a 1")
		r.hub.put(device.Reading{Point: "lever/a", Quality: device.Bad, At: time.Now(), Why: "gone"}, 10*time.Second)
		w.next(t, "a - fault")
		time.Sleep(time.Hour)
		w.next(t)
		if err := w.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, _, watchers := r.hub.Counts(); watchers != 0 || r.held[Subscriptions].held[account{"local", true}] != 0 {
			t.Error("something of it is left")
		}
	})
}

func TestWatchOutputs(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		l := &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points lever/arm"}}}
		r.access = l
		w := r.watch(t, own, agents.WatchRequest{Points: []string{arm}})
		defer w.end()
		part := r.watch(t, shy, agents.WatchRequest{})
		defer part.end()
		w.next(t, "arm - stale [ 0 0 ], approvals, stopped false")
		part.next(t, "arm - stale [ 0 0 ], approvals") // the site as a whole is not shy's to see
		s, set := &r.outputs.now, r.outputs.set
		both := func(want, wantPart string) {
			t.Helper()
			if want == "" {
				w.next(t)
				part.next(t)
				return
			}
			w.next(t, want)
			part.next(t, wantPart)
		}
		set(func() { s.Holder, s.Left, s.Safe = "ann", time.Minute, false })
		both("arm - stale [ann 60 0 ]", "arm - stale [somebody else 60 0 ]")
		time.Sleep(40 * time.Second)
		set(func() { s.Left = 20500 * time.Millisecond }) // as good as it was told
		both("", "")
		set(func() { s.Left = 25 * time.Second }) // renewed
		both("arm - stale [ann 25 0 ]", "arm - stale [somebody else 25 0 ]")
		set(func() { s.Lacks = "lever/a < 3: it is 4" })
		both("arm - stale [ann 25 0 lever/a < 3: it is 4]", "arm - stale [somebody else 25 0 something that you may not see]")
		set(func() { s.Lacks = ""; s.Goal = device.Number(7) })
		both("arm - stale [ann 25 0 ]", "arm - stale [somebody else 25 0 ]")
		set(func() { s.Holder, s.Left, s.Rest, s.Safe, s.Why = "", 0, 10*time.Second, true, "its lease was over" })
		both("arm - stale [ 0 10 its lease was over]", "arm - stale [ 0 10 its lease was over]")
		time.Sleep(20 * time.Second)
		set(func() { s.Rest = 0 })
		both("", "")
		set(func() { r.outputs.stopped = true })
		w.next(t, "stopped true")
		part.next(t)
		set(func() { r.outputs.stopped = false })
		w.next(t, "stopped false")
		// The lengths are those of the update, when the value alone has changed.
		set(func() { s.Holder, s.Left = "ann", time.Minute })
		w.next(t, "arm - stale [ann 60 0 its lease was over]")
		time.Sleep(10 * time.Second)
		s.Left = 50 * time.Second
		r.put("arm", device.Number(3), 0)
		w.next(t, "arm 3 [ann 50 0 its lease was over]")
	})
}

// TestWatchSlow: a watcher that does not come back holds up no reading, and is then told
// once of each point.
func TestWatchSlow(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		w := r.watch(t, ann, agents.WatchRequest{})
		w.next(t, none4+", approvals, stopped false")
		w.hold = make(chan struct{})
		r.put("a", device.Number(0), 0)
		w.next(t, "a 0")
		begun := time.Now()
		for i := range 10_000 {
			r.put([]string{"a", "b"}[i%2], device.Number(float64(i)), 0)
		}
		if time.Since(begun) != 0 {
			t.Error("the readings waited for a watcher")
		}
		r.outputs.set(func() { r.outputs.now.Holder = "ann" })
		w.next(t)
		close(w.hold)
		w.next(t, "arm - stale [ann 0 0 ], a 9998, b 9999")
		if err := w.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestWatchEvery(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		w := r.watch(t, own, agents.WatchRequest{Points: []string{"lever/a"}, Every: 10})
		defer w.end()
		w.next(t, "a - stale, approvals, stopped false")
		time.Sleep(time.Second / 2)
		for i := range 25 {
			r.put("a", device.Number(float64(i)), 0)
			time.Sleep(time.Second)
		}
		w.next(t, "a 9 0.5s ago", "a 19 0.5s ago")
		time.Sleep(5 * time.Second)
		w.next(t, "a 24 5.5s ago")
		time.Sleep(10 * time.Second)
		r.put("a", device.Number(0), 0)
		time.Sleep(gatherTime)
		w.next(t, "a 0 0.05s ago") // at once after a pause
	})
}

// TestWatchGathers: devices that are read at the same moments make one update for a watcher that has time.
func TestWatchGathers(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		w := r.watch(t, own, agents.WatchRequest{Points: []string{"lever/a", "lever/b"}, Every: 0.5})
		defer w.end()
		w.next(t, "a - stale, b - stale, approvals, stopped false")
		for n := range 3 {
			time.Sleep(10 * time.Second)
			r.put("a", device.Number(float64(n)), 0)
			time.Sleep(20 * time.Millisecond)
			r.put("b", device.Number(float64(n)), 0)
			time.Sleep(time.Second)
			w.next(t, fmt.Sprintf("a %d 0.05s ago, b %[1]d 0.03s ago", n))
		}
	})
}

func TestWatchReload(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		all, offer := r.watch(t, ann, agents.WatchRequest{}), r.watch(t, ann, agents.WatchRequest{OfferOnly: true})
		named := r.watch(t, ann, agents.WatchRequest{Points: []string{"lever/b", "lever/a"}})
		r.put("a", device.Number(1), 0)
		r.put("b", device.Number(2), 0)
		synctest.Wait()
		for _, w := range []*watcher{all, offer, named} {
			for len(w.told) > 0 {
				<-w.told
			}
		}
		before := r.site.Devices
		points := before[0].Description.Points
		r.site.Devices = []Device{{Name: "lever", Description: device.Description{Points: []device.Point{points[0], points[2], {Name: "c", Kind: device.KindState}}}}}
		r.setSite()
		all.next(t, "offer, arm - stale [ 0 0 ], b 2, c - stale, approvals, stopped false")
		named.next(t, "offer, b 2, approvals, stopped false")
		offer.next(t, "offer")
		r.put("c", device.Bool(true), 0)
		r.put("a", device.Number(7), 0) // gone
		all.next(t, "c on")
		named.next(t)
		r.site.Devices = before
		r.setSite()
		named.next(t, "offer, b 2, a 7, approvals, stopped false")
		for _, w := range []*watcher{all, offer, named} {
			if err := w.end(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestWatchApprovals: an owner is told of all calls that wait for it, others of their own.
func TestWatchApprovals(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		r.confirming()
		named := agents.WatchRequest{Points: []string{"lever/b"}}
		owner, asker, other := r.watch(t, own, named), r.watch(t, ann, named), r.watch(t, bob, named)
		for _, w := range []*watcher{owner, asker, other} {
			w.next(t, "b - stale, approvals, stopped false")
			defer w.end()
		}
		const call = `approvals ann set_level {"output":"lever/arm","value":1}`
		r.desk.ask(ann, 1)
		owner.next(t, call+" 120")
		asker.next(t, call+" 120")
		time.Sleep(time.Second)
		r.desk.ask(ann, 1) // again: nothing new
		owner.next(t)
		r.desk.ask(bob, 2)
		owner.next(t, call+` 119 bob set_level {"output":"lever/arm","value":2} 120`)
		other.next(t, `approvals bob set_level {"output":"lever/arm","value":2} 120`)
		asker.next(t)
		all, err := r.Requests(own)
		if err != nil || r.Approve(own, all[1].Handle, true) != nil {
			t.Fatal(all, err)
		}
		owner.next(t, call+" 119")
		other.next(t, "approvals")
		time.Sleep(approveWithin - time.Second + time.Nanosecond)
		owner.next(t, "approvals") // nobody answered in time
		asker.next(t, "approvals")
		other.next(t)
	})
}

func TestWatchRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		for what, q := range map[string]agents.WatchRequest{
			"an unknown point":  {Points: []string{"lever/c"}},
			"a point twice":     {Points: []string{"lever/a", "lever/a"}},
			"a negative length": {Every: -1},
			"a long length":     {Every: 3601},
			"NaN":               {Every: math.NaN(), OfferOnly: true},
		} {
			if err := r.watch(t, ann, q).end(); device.AsFault(err).Kind != device.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		var all []*watcher
		for i := range bounds[Subscriptions].reserved {
			all = append(all, r.watch(t, ann, agents.WatchRequest{OfferOnly: i%2 == 0}))
		}
		synctest.Wait()
		for _, offerOnly := range []bool{true, false} {
			if err := r.watch(t, ann, agents.WatchRequest{OfferOnly: offerOnly}).end(); device.AsFault(err).Kind != device.Busy {
				t.Error("one too many:", err)
			}
		}
		for _, w := range all {
			w.end()
		}
		again := r.watch(t, ann, agents.WatchRequest{})
		again.next(t, none4+", approvals, stopped false")
		again.end()
		gone := errors.New("gone")
		if err := r.Node.Watch(t.Context(), ann, agents.WatchRequest{}, func(agents.Update) error { return gone }); err != gone {
			t.Error(err)
		}
	})
}
