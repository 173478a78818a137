package occurrence

import (
	"context"
	"fmt"
	"slices"
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
	stopped  bool
	changed  chan struct{}
	requests []node.Request
	got      []Occurrence
	end      func()
}

func (w *world) Stopped() bool            { return w.stopped }
func (w *world) Changed() <-chan struct{} { return w.changed }

type noRecorder struct{}

func (noRecorder) Record(device.Reading) {}

func newWorld(t *testing.T) *world {
	w := &world{hub: node.NewHub(nil, noRecorder{}, agents.PointURI), changed: make(chan struct{})}
	w.Source = New(Options{
		Requests: func(agents.Principal) ([]node.Request, error) { return w.requests, nil },
		Hub:      w, Outputs: w, Now: func() (time.Time, bool) { return time.Now(), true },
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

// latest are the readings that Latest answers, by point.
var latest map[string]device.Reading

func (w *world) On(which agents.Change, wake func()) func() { return w.hub.On(which, wake) }
func (w *world) Latest(address string) (device.Reading, bool) {
	r, ok := latest[address]
	return r, ok
}

func (w *world) listen() { w.Join(func(o Occurrence) { w.got = append(w.got, o) }) }

// told returns what was told, and forgets it.
func (w *world) told() (all []string) {
	synctest.Wait()
	for _, o := range w.got {
		all = append(all, fmt.Sprint(o.Kind, " ", o.Of, " ", o.State))
	}
	w.got = nil
	return all
}

func (w *world) change() { close(w.changed); w.changed = make(chan struct{}) }

// TestOccurrences: each is told once, when it begins, and what lasts when it ends.
func TestOccurrences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		good, bad := device.Reading{Quality: device.Good}, device.Reading{Quality: device.Bad, Why: "no answer"}
		latest = map[string]device.Reading{"climate/a": good, "climate/b": bad}
		w.listen()
		expect := func(what string, want ...string) {
			t.Helper()
			if got := w.told(); !slices.Equal(got, want) {
				t.Errorf("%s: %q instead of %q", what, got, want)
			}
		}
		time.Sleep(2 * time.Minute)
		expect("a device with one good point, and one that was never read")
		latest["climate/a"] = bad
		time.Sleep(time.Minute + time.Second)
		expect("no good point", "device climate begins")
		time.Sleep(time.Hour)
		expect("the same")
		latest["climate/a"] = good
		time.Sleep(time.Minute)
		expect("back", "device climate ends")
		latest["climate/a"] = bad
		time.Sleep(lookInterval)
		latest["climate/a"] = good
		time.Sleep(time.Minute)
		expect("gone at one look")

		w.stopped = true
		w.change()
		expect("a stop", "stop  begins")
		w.change()
		expect("still stopped")
		w.stopped = false
		w.change()
		expect("reset", "stop  ends")

		w.requests = []node.Request{{Handle: "H", Who: "rule:frost", Tool: "set_level", Left: time.Minute}}
		w.hub.Announce(agents.Change{Approvals: true})
		expect("a request", "approval H once")
		w.requests = append(w.requests, node.Request{Handle: "I"})
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

// TestLateJoiner: who joins late is told of what lasts and of the last others, with the same IDs.
func TestLateJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latest = nil
		w := newWorld(t)
		defer w.end()
		w.listen()
		w.stopped = true
		w.change()
		synctest.Wait()
		for i := range 10_000 {
			w.Returned("heater/on", fmt.Sprint("ann", i), "the hardware did not follow")
		}
		first := w.got
		if len(first) != 10_001 {
			t.Fatal(len(first))
		}
		var late []Occurrence
		leave := w.Join(func(o Occurrence) { late = append(late, o) })
		if len(late) != maxRecent+1 || late[0].ID != first[0].ID || late[maxRecent].ID != first[10_000].ID {
			t.Errorf("%d were told: %+v", len(late), late)
		}
		leave()
		w.Returned("heater/on", "bob", "the hardware did not follow")
		if len(late) != maxRecent+1 || len(w.got) != 10_002 {
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

// TestAtRest: nothing is watched before the first Join.
func TestAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		asked := 0
		w.Options.Requests = func(agents.Principal) ([]node.Request, error) { asked++; return nil, nil }
		time.Sleep(time.Hour)
		if asked > 0 {
			t.Error("it looks for nobody")
		}
		w.end()
	})
}
