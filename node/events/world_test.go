package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/history"
	"agentsite/node/occurrence"
)

var (
	ann   = agents.Principal{ID: "did:key:ann", Kind: principal.Token}
	owner = agents.Principal{ID: "did:key:own", Kind: principal.Local, Owner: true}
)

// world is the site of a Source. What a caller may read is set by may.
type world struct {
	*Source
	hub     *node.Hub
	history *history.History

	mu      sync.Mutex // of what follows
	all     []agents.Point
	hidden  map[string]bool // from ann
	charged int
	left    int // charges that a rate allows; 0 for any
	looks   int // at the records
	busy    bool
	stopped bool
	changed chan struct{}
	waits   []node.Request
	now     func() (time.Time, bool) // nil for the machine's
}

var points = []agents.Point{
	{Point: "soil/moisture", Kind: device.KindMeasurement, Unit: "%"},
	{Point: "soil/warmth", Kind: device.KindMeasurement, Unit: "Cel"},
	{Point: "door/position", Kind: device.KindState, Values: []string{"open", "closed"}},
	{Point: "wall/button", Kind: device.KindEvent, Values: []string{"press"}},
	{Point: "valve/on", Kind: device.KindSwitch, Safe: device.Bool(false)},
}

func described() map[string]device.Point {
	all := make(map[string]device.Point)
	for _, p := range points {
		all[p.Point] = device.Point{Kind: p.Kind, Unit: p.Unit, Values: p.Values}
	}
	return all
}

func newWorld(t *testing.T) *world {
	w := &world{all: points, hidden: make(map[string]bool), changed: make(chan struct{})}
	w.start(t, "")
	return w
}

// start begins a run of the site, with a history in a folder, or in memory.
func (w *world) start(t *testing.T, folder string) {
	now := w.now
	if now == nil {
		now = func() (time.Time, bool) { return time.Now(), true }
	}
	w.history = history.New(described())
	w.history.Now = now
	if folder != "" {
		if err := w.history.Open(folder, history.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	w.hub = node.NewHub(nil, w.history, agents.PointURI)
	occurrences := occurrence.New(occurrence.Options{
		Requests: func(agents.Principal) ([]node.Request, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.waits, nil
		},
		Wishes:  func(agents.Principal) ([]node.Wish, error) { return nil, nil },
		SignIns: func() []string { return nil }, Hub: w.hub, Outputs: w, Now: now,
	})
	w.Source = New(Options{
		Node: w, Hub: w, History: w.history, Occurrences: occurrences, Secret: "secret", Now: now,
	})
}

func (w *world) Stopped() bool            { w.mu.Lock(); defer w.mu.Unlock(); return w.stopped }
func (w *world) Changed() <-chan struct{} { w.mu.Lock(); defer w.mu.Unlock(); return w.changed }
func (w *world) set(change func())        { w.mu.Lock(); defer w.mu.Unlock(); change() }

func (w *world) Readable(p agents.Principal) (all []agents.Point, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.all {
		if p.Owner || !w.hidden[q.Point] {
			all = append(all, q)
		}
	}
	return all, nil
}

func (w *world) MayRead(agents.Principal, []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks++; w.busy {
		return device.Faultf(device.Busy, "later")
	}
	return nil
}

func (w *world) ChargeRead(agents.Principal, []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.charged++; w.busy || w.left > 0 && w.charged > w.left {
		return device.Faultf(device.Busy, "later")
	}
	return nil
}

func (w *world) Offer(_ context.Context, p agents.Principal) (*agents.Offer, error) {
	return &agents.Offer{Status: true, Read: []string{"soil/moisture"}}, nil
}

func (w *world) Owner(p agents.Principal) error {
	if !p.Owner {
		return device.Faultf(device.Denied, "no owner")
	}
	return nil
}

func (w *world) ReadPast(context.Context, agents.Principal) (func(), error) { return func() {}, nil }
func (w *world) Latest(address string) (device.Reading, bool)               { return w.hub.Latest(address) }
func (w *world) OnPoints(points []string, wake func()) func()               { return w.hub.OnPoints(points, wake) }
func (w *world) GoodFor(address string) time.Duration {
	if address == "soil/moisture" || address == "soil/warmth" {
		return 30 * time.Second
	}
	return 0
}

// read records a reading, and wakes who follows. The driver's part of the hub is not exported.
func (w *world) read(point string, v device.Value) { w.change(point, v, "", "") }

func (w *world) change(point string, v device.Value, holder, cause string) {
	r := device.Reading{Point: point, Value: v, Quality: device.Good, At: time.Now(), Holder: holder, Cause: cause}
	if v.IsZero() {
		r.Quality = device.Bad
	}
	w.history.Record(r)
	w.hub.Announce(agents.Change{URI: agents.PointURI(point)})
}

func ask(name, arguments string) event.Request {
	return event.Request{Name: name, Args: json.RawMessage(arguments)}
}

// poll polls, and goes on from there at the next time.
func (w *world) poll(t *testing.T, r *event.Request) event.Page {
	t.Helper()
	page, err := w.Poll(t.Context(), ann, *r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Name, r.Args, err)
	}
	r.Cursor = page.Cursor
	return page
}

func ids(page event.Page) (all []string) {
	for _, e := range page.Events {
		all = append(all, e.ID)
	}
	return all
}

// told are the data of events, in short.
func told(page event.Page) (all []string) {
	for _, e := range page.Events {
		var d map[string]any
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return []string{err.Error()}
		}
		s := e.Name
		for _, name := range []string{"point", "output", "value", "broke", "holder", "stopped", "state", "asks"} {
			if v, ok := d[name]; ok {
				s += fmt.Sprint(" ", v)
			}
		}
		all = append(all, s)
	}
	return all
}

// follow follows in the background, and returns the IDs that were told so far.
func (w *world) follow(t *testing.T, r event.Request) (have func() []string, end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var all []string
	ended := make(chan error, 1)
	source := w.Source
	go func() {
		ended <- source.Follow(ctx, ann, r, func(p event.Page) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ids(p)...)
			return nil
		})
	}()
	synctest.Wait()
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) },
		func() error { cancel(); return <-ended }
}

// someAgents has one agent that takes tasks.
type someAgents struct{}

func (someAgents) Agents(context.Context, agents.Principal) ([]task.Agent, error) {
	return []task.Agent{{Name: "gardener"}}, nil
}

// newPolled returns a world of a minute, and a request for presses that was polled once.
func newPolled(t *testing.T) (*world, event.Request) {
	w := newWorld(t)
	time.Sleep(time.Minute)
	r := ask(ButtonPressed, `{"point":"wall/button"}`)
	w.poll(t, &r)
	return w, r
}
