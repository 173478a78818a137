package occurrence

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
)

// world is the site of a Source.
type world struct {
	*Source
	hub      *node.Hub
	mu       sync.Mutex // of what follows
	latest   map[string]device.Reading
	stopped  bool
	changed  chan struct{}
	requests []node.Request
	wishes   []node.Wish
	signIns  []string
	got      []Occurrence
	end      func()
}

func (w *world) Stopped() bool            { w.mu.Lock(); defer w.mu.Unlock(); return w.stopped }
func (w *world) Changed() <-chan struct{} { w.mu.Lock(); defer w.mu.Unlock(); return w.changed }

// set changes the world.
func (w *world) set(change func()) { w.mu.Lock(); defer w.mu.Unlock(); change() }

type noRecorder struct{}

func (noRecorder) Record(device.Reading) {}

func newWorld(t *testing.T) *world {
	w := &world{hub: node.NewHub(nil, noRecorder{}, agents.PointURI), changed: make(chan struct{})}
	w.Source = New(Options{
		Requests: func(agents.Principal) ([]node.Request, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.requests, nil
		},
		Wishes:  func(agents.Principal) ([]node.Wish, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.wishes, nil },
		SignIns: func() []string { w.mu.Lock(); defer w.mu.Unlock(); return w.signIns },
		Hub:     w, Outputs: w, Now: func() (time.Time, bool) { return time.Now(), true },
	})
	var some []node.Device
	for _, name := range []string{"climate", "tank"} {
		some = append(some, node.Device{Name: name, Description: device.Description{Points: []device.Point{
			{Name: "a", Kind: device.KindMeasurement}, {Name: "b", Kind: device.KindMeasurement},
		}}})
	}
	w.SetDevices(some)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	w.end = func() { cancel(); <-ended }
	return w
}

func (w *world) On(which agents.Change, wake func()) func() { return w.hub.On(which, wake) }
func (w *world) Latest(address string) (device.Reading, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.latest[address]
	return r, ok
}

func (w *world) listen() { w.Join(func(o Occurrence) { w.set(func() { w.got = append(w.got, o) }) }) }

// told returns what was told, and forgets it.
func (w *world) told() (all []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.got {
		all = append(all, fmt.Sprint(o.Kind, " ", o.Of, " ", o.State))
	}
	w.got = nil
	return all
}

func (w *world) change(stopped bool) {
	w.set(func() { w.stopped = stopped; close(w.changed); w.changed = make(chan struct{}) })
}

// TestOccurrences: each is told once, when it begins, and what lasts when it ends.
func TestOccurrences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		good, bad := device.Reading{Quality: device.Good}, device.Reading{Quality: device.Bad, Why: "no answer"}
		read := func(address string, r device.Reading) { w.set(func() { w.latest[address] = r }) }
		w.set(func() { w.latest = map[string]device.Reading{"climate/a": good, "climate/b": bad} })
		w.listen()
		expect := func(what string, want ...string) {
			t.Helper()
			if got := w.told(); !slices.Equal(got, want) {
				t.Errorf("%s: %q instead of %q", what, got, want)
			}
		}
		time.Sleep(2 * time.Minute)
		expect("a device with one good point, and one that was never read", "stop  ends", "device climate ends")
		read("climate/a", bad)
		time.Sleep(time.Minute + time.Second)
		expect("no good point", "device climate begins")
		time.Sleep(time.Hour)
		expect("the same")
		read("climate/a", good)
		time.Sleep(time.Minute)
		expect("back", "device climate ends")
		read("climate/a", bad)
		time.Sleep(lookInterval)
		read("climate/a", good)
		time.Sleep(time.Minute)
		expect("gone at one look")

		w.change(true)
		expect("a stop", "stop  begins")
		w.change(true)
		expect("still stopped")
		w.change(false)
		expect("reset", "stop  ends")

		w.set(func() {
			w.requests = []node.Request{{Handle: "H", Who: "rule:frost", Tool: "set_level", Left: time.Minute}}
		})
		w.hub.Announce(agents.Change{Approvals: true})
		expect("a request", "approval H once")
		w.set(func() { w.requests = append(w.requests, node.Request{Handle: "I"}) })
		w.hub.Announce(agents.Change{Approvals: true})
		expect("another", "approval I once")

		for _, cause := range []string{"", "its lease was over", "everything was sent to safe", "its configuration was changed"} {
			w.Returned("heater/on", "ann", cause)
		}
		expect("returns that somebody wanted")
		w.Returned("heater/on", "ann", "what it requires was not so")
		expect("a broken lease", "lease heater/on once")
		w.Ending("token:kitchen.1", "G", time.Now().Add(time.Hour))
		expect("an end", "permission G once")
	})
}

// TestPrograms: what a program asks for is told once, and not too often that some ask to sign in, which strangers can.
func TestPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.listen()
		w.told()
		expect := func(what string, want ...string) {
			t.Helper()
			if got := w.told(); !slices.Equal(got, want) {
				t.Errorf("%s: %q instead of %q", what, got, want)
			}
		}
		wish := node.Wish{Handle: "W", Who: "token:claude", Tool: "set_level", Left: time.Hour}
		w.set(func() { w.wishes = []node.Wish{wish} })
		w.hub.Announce(agents.Change{Approvals: true})
		expect("a wish", "wish W once")
		w.hub.Announce(agents.Change{Approvals: true})
		expect("the same wish")

		w.set(func() { w.signIns = []string{"ABCD-EFGH"} })
		time.Sleep(lookInterval + time.Second)
		synctest.Wait()
		w.mu.Lock()
		if n := len(w.got); n != 1 || w.got[0].Kind != SignIn || w.got[0].Of != "" || w.got[0].Who != "" {
			t.Errorf("a sign-in: %+v", w.got)
		}
		w.mu.Unlock()
		w.told()
		for i := range 100 { // a stranger asks again and again
			w.set(func() { w.signIns = []string{fmt.Sprint("X-", i)} })
			time.Sleep(time.Minute)
		}
		if got := w.told(); len(got) != 10 {
			t.Errorf("%d were told in 100 minutes", len(got))
		}
		w.set(func() { w.signIns = nil })
		time.Sleep(time.Hour)
		expect("none any more")
		w.set(func() { w.signIns = []string{"ABCD-EFGH"} })
		time.Sleep(time.Hour)
		expect("one that waits for an hour", "sign_in  once")
	})
}

// TestPower: a supply that is too weak, and the end of the machine's power, are told once, and to who joins late with
// the time that is left.
func TestPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.listen()
		w.told()
		w.Supplied(true)
		w.Supplied(true)
		w.PoweringOff(true, "ups/charge < 10 %", time.Minute)
		w.PoweringOff(true, "ups/charge < 10 %", 30*time.Second)
		if got := w.told(); !slices.Equal(got, []string{"supply  begins", "power_off  begins"}) {
			t.Errorf("%q", got)
		}
		for _, want := range []time.Duration{40 * time.Second, 0} {
			time.Sleep(20*time.Second + (40*time.Second - want))
			var late []Occurrence
			w.Join(func(o Occurrence) { late = append(late, o) })()
			i := slices.IndexFunc(late, func(o Occurrence) bool { return o.Kind == PowerOff })
			if i < 0 || late[i].Left != want || late[i].Because != "ups/charge < 10 %" {
				t.Errorf("%+v", late)
			}
		}
		w.Supplied(false)
		w.PoweringOff(false, "", 0)
		w.PoweringOff(false, "", 0)
		if got := w.told(); !slices.Equal(got, []string{"supply  ends", "power_off  ends"}) {
			t.Errorf("%q", got)
		}
		w.RolledBack("it was not well")
		w.RolledBack("it was not well")
		if got := w.told(); !slices.Equal(got, []string{"rollback  once", "rollback  once"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestLateJoiner: who joins late is told of what lasts and of the last others, with the same IDs.
func TestLateJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.listen()
		synctest.Wait()
		w.change(true)
		synctest.Wait()
		for i := range 10_000 {
			w.Returned("heater/on", fmt.Sprint("ann", i), "the hardware did not follow")
		}
		first := w.got
		if len(first) != 10_002 {
			t.Fatal(len(first))
		}
		var late []Occurrence
		leave := w.Join(func(o Occurrence) { late = append(late, o) })
		if len(late) != maxRecent+1 || late[0].ID != first[1].ID || late[maxRecent].ID != first[10_001].ID {
			t.Errorf("%d were told: %+v", len(late), late)
		}
		leave()
		w.Returned("heater/on", "bob", "the hardware did not follow")
		if len(late) != maxRecent+1 || len(w.got) != 10_003 {
			t.Error("it is told after it left")
		}
		ids := make(map[string]bool)
		for _, o := range w.got {
			ids[o.ID] = true
		}
		w.Ending("a", "G", time.Now().Add(time.Hour))
		time.Sleep(time.Minute)
		w.Ending("a", "G", time.Unix(time.Now().Add(59*time.Minute).Unix(), 0))
		if n := len(w.got); w.got[n-1].ID != w.got[n-2].ID {
			t.Error("one end has two IDs")
		}
	})
}

// TestOver: who joins late is told of the calls that wait still, and for how long they do.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.listen()
		wait := func(all ...node.Request) {
			w.set(func() { w.requests = all })
			w.hub.Announce(agents.Change{Approvals: true})
			synctest.Wait()
		}
		answered := node.Request{Handle: "answered", Left: time.Hour}
		late, waits := node.Request{Handle: "late", Left: time.Minute}, node.Request{Handle: "waits", Left: time.Hour}
		wait(answered, late, waits)
		wait(late, waits)
		time.Sleep(2 * time.Minute)
		w.told()
		w.listen()
		w.mu.Lock()
		defer w.mu.Unlock()
		var all []string
		for _, o := range w.got {
			if o.Kind == Approval {
				all = append(all, fmt.Sprint(o.Of, " ", o.Left))
			}
		}
		if !slices.Equal(all, []string{"waits 58m0s"}) {
			t.Errorf("%q", all)
		}
	})
}

// TestRemoved: a lost device that is not in the configuration any more is not said to be read again.
func TestRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.set(func() {
			w.latest = map[string]device.Reading{
				"climate/a": {Quality: device.Bad}, "tank/a": {Quality: device.Bad, Why: "no answer"},
			}
		})
		w.listen()
		time.Sleep(2*lookInterval + time.Second)
		w.set(func() { w.latest["tank/b"] = device.Reading{Quality: device.Good} })
		time.Sleep(lookInterval)
		w.told()
		w.SetDevices(nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.got) != 1 || w.got[0].Of != "climate" || w.got[0].State != Ends || w.got[0].Because != Removed ||
			w.ended[len(w.ended)-2].Because != "" {
			t.Errorf("%+v, %+v", w.got, w.ended)
		}
	})
}

// TestAtRest: nothing is watched before the first Join.
func TestAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		asked := 0
		w.set(func() {
			w.Options.Requests = func(agents.Principal) ([]node.Request, error) { asked++; return nil, nil }
		})
		time.Sleep(time.Hour)
		if asked > 0 {
			t.Error("it looks for nobody")
		}
		w.end()
	})
}
