package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/transport/rpc"
)

// bay is hardware that a test plugs, unplugs and watches: parts by their pins, each
// with an owner at most.
type bay struct {
	mu    sync.Mutex
	away  map[string]error         // why a pin's part cannot be opened
	hangs map[string]chan struct{} // until when a pin's driver hangs as it opens or closes
	hung  []string                 // each time that one did
	owned map[string]bool
	at    map[string]device.Value // of relays
	stuck map[string]bool         // relays that do not follow
	log   []string
	tries []time.Time // to open something
	wrong []string    // what must never happen
}

func (b *bay) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (b *bay) note(format string, args ...any) { b.log = append(b.log, fmt.Sprintf(format, args...)) }

// told is what happened since the last time.
func (b *bay) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	log := b.log
	b.log = nil
	return strings.Join(log, ", ")
}

// sorted is told, where several things happen beside each other: moves, then closing,
// then opening.
func (b *bay) sorted() string {
	parts := strings.Split(b.told(), ", ")
	rank := func(s string) string {
		before, after, _ := strings.Cut(s, " ")
		switch before {
		case "close":
			return "1" + after
		case "open":
			return "2" + after
		}
		return "0" + s
	}
	slices.SortStableFunc(parts, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return strings.Join(parts, ", ")
}

func (b *bay) drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "relay", Config: func() driver.Config { return &relayConfig{part{b: b}} }},
		{Name: "probe", Config: func() driver.Config { return &probeConfig{part{b: b}} }},
	}
}

type part struct {
	Pin    string `json:"pin"`
	b      *bay
	closed bool
}

// hang lasts until the pin's driver does not hang any more, with the bay locked.
func (p *part) hang() {
	if hangs := p.b.hangs[p.Pin]; hangs != nil {
		p.b.hung = append(p.b.hung, p.Pin)
		p.b.mu.Unlock()
		<-hangs
		p.b.mu.Lock()
	}
}

func (p *part) open() error {
	p.b.mu.Lock()
	p.hang()
	defer p.b.mu.Unlock()
	p.b.tries = append(p.b.tries, time.Now())
	if err := p.b.away[p.Pin]; err != nil {
		return err
	}
	if p.b.owned[p.Pin] {
		p.b.wrong = append(p.b.wrong, "two owners of "+p.Pin)
	}
	p.b.owned[p.Pin], p.closed = true, false
	p.b.note("open %s", p.Pin)
	return nil
}

func (p *part) Close() error {
	p.b.mu.Lock()
	p.hang()
	defer p.b.mu.Unlock()
	p.b.owned[p.Pin], p.closed = false, true
	p.b.note("close %s", p.Pin)
	return nil
}

// use is what a part is for, while it is open.
func (p *part) use() {
	if p.closed {
		p.b.wrong = append(p.b.wrong, p.Pin+" was used after it was closed")
	}
}

// relayConfig is of a switch whose points are known without hardware.
type relayConfig struct{ part }

func (c *relayConfig) Open(context.Context) (device.Device, error) { return (*relay)(c), c.open() }
func (*relayConfig) Describe() device.Description {
	return device.Description{Model: "a relay", Points: []device.Point{{Name: "on", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
}

type relay relayConfig

func (r *relay) Describe() device.Description { return (*relayConfig)(nil).Describe() }
func (r *relay) Apply(_ context.Context, _ string, v device.Value) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.use()
	if r.b.stuck[r.Pin] {
		return device.Faultf(device.Offline, "it is stuck")
	}
	if r.b.at[r.Pin] != v {
		r.b.note("%s %v", r.Pin, v)
	}
	r.b.at[r.Pin] = v
	return nil
}

// probeConfig is of a sensor whose points only its hardware knows.
type probeConfig struct{ part }

func (c *probeConfig) Open(context.Context) (device.Device, error) { return (*probe)(c), c.open() }

type probe probeConfig

func (p *probe) Describe() device.Description {
	return device.Description{Model: "a probe", Points: []device.Point{{Name: "t", Kind: device.KindMeasurement, Unit: "V"}}}
}
func (p *probe) Sample(context.Context) ([]device.Reading, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.use()
	return []device.Reading{{Point: "t", Value: device.Number(2), Quality: device.Good, At: time.Now()}}, nil
}

// rig is a site without carriers, over a bay.
type rig struct {
	*bay
	*wiring
	door *node.Node
	text string // of the file
	end  func()

	processes func() int // of guards that were started
}

const head = "site: { name: x }\ndevices:\n"

func newRig(t *testing.T, b *bay, devices string) *rig {
	t.Helper()
	b.owned, b.at, b.stuck = map[string]bool{}, map[string]device.Value{}, map[string]bool{}
	if b.away == nil {
		b.away = map[string]error{}
	}
	r := &rig{bay: b, text: head + devices}
	read := func() (*config.Site, error) { return config.Parse("test", []byte(r.text), b.drivers()) }
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Reset(); err != nil {
		t.Fatal(err)
	}
	planned, err := newPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	followed, staged := planned.text, []byte(nil)
	var started atomic.Int32
	r.processes = func() int { return int(started.Load()) }
	outputs := proc.NewKeeper(planned.policies, latch, func() (proc.Process, error) {
		started.Add(1)
		cfg, err := config.Parse("plan", followed, b.drivers())
		if err != nil {
			return proc.Process{}, err
		}
		return inProcess(cfg, latch, b.drivers()), nil
	})
	opens := newOpener(outputs)
	all, err := openDevices(t.Context(), cfg, board.New(), opens)
	if err != nil {
		t.Fatal(err)
	}
	past := history.New(nil)
	hub := node.NewHub(nil, past, things.URI)
	r.door = node.New(hub, "", unwritten{})
	r.wiring = &wiring{
		board: board.New(), read: read, cfg: cfg, devices: all, keeper: outputs, opens: opens, past: past, hub: hub, reloads: make(chan chan<- error),
		plan: planned, stage: func(text []byte) error { staged = text; return nil }, install: func() error { followed = staged; return nil },
		offer: func(all []things.Thing) error {
			agent, err := things.New(things.Site{Name: "x", Things: all, Readings: hub, History: past, Outputs: outputs})
			r.door.Host(agent)
			return err
		},
	}
	if err := r.publish(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { outputs.Run(ctx) })
	running.Go(func() { hub.Sample(ctx, nil, outputs) })
	running.Go(func() { r.Run(ctx) })
	r.end = func() {
		cancel()
		running.Wait()
		closeDevices(r.devices)
		if b.wrong != nil {
			t.Errorf("%q", b.wrong)
		}
		for pin, owned := range b.owned {
			if owned {
				t.Errorf("%s was never closed", pin)
			}
		}
	}
	time.Sleep(20 * time.Second) // outputs are at safe and rested
	synctest.Wait()
	return r
}

// inProcess is a guard's process that is none.
func inProcess(cfg *config.Site, latch guard.Latch, drivers []driver.Driver) proc.Process {
	ours, its := net.Pipe()
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- drive(ctx, cfg, latch, func(ctx context.Context, d *driving) error {
			return d.serve(ctx, its, drivers, "")
		})
	}()
	return proc.Process{Conn: ours, Kill: kill, Wait: func() error { defer kill(); return <-ended }}
}

var ann = agents.Principal{ID: "ann"}

// call returns a tool's result, or its error, as text.
func (r *rig) call(t *testing.T, tool, args string) string {
	t.Helper()
	res, err := r.door.Call(t.Context(), ann, agents.Call{Tool: tool, Args: rpc.RawJSON([]byte(args)), Note: func(agents.Note) {}})
	if err != nil {
		return string(device.AsFault(err).Kind) + ": " + err.Error()
	}
	return fmt.Sprintf("%+v", res.Value)
}

// says calls a tool once all that is under way has settled, and looks for the wants.
func (r *rig) says(t *testing.T, tool, args string, wants ...string) {
	t.Helper()
	synctest.Wait()
	got := r.call(t, tool, args)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s %s: %s\nwant %s", tool, args, got, want)
		}
	}
}

const (
	pumpOn   = `{"output":"pump/on","on":true,"for_seconds":300}`
	pumpOff  = `{"output":"pump/on","on":false}`
	lampOn   = `{"output":"lamp/on","on":true,"for_seconds":300}`
	readAll  = `{}`
	twoParts = "  pump: { driver: relay, pin: p1 }\n  lamp: { driver: relay, pin: p2, max_on: 5m }\n"
	threeOf  = twoParts + "  soil: { driver: probe, pin: p3, unit: K }\n"
)

// TestReload: what has changed is safe, closed, opened and driven to safe again; what
// has not goes on as if nothing had happened.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", pumpOn, "Value:true")
		r.says(t, "switch_output", lampOn, "Value:true")
		time.Sleep(70 * time.Second) // so that there is a past
		synctest.Wait()
		r.told()
		news := make(chan agents.Change, 8)
		watching, unwatch := context.WithCancel(t.Context())
		defer unwatch()
		go r.door.Watch(watching, ann, agents.Change{Tools: true, Resources: true}, []string{things.URI("lamp/on"), things.URI("pump/on")}, func(c agents.Change) error {
			news <- c
			return nil
		})
		synctest.Wait()
		<-news // it has begun

		// The pump's limits change, soil moves to the fan's pin, the order changes.
		r.text = head + "  lamp: { max_on: 5m, pin: \"p2\", driver: relay }\n  fan: { driver: relay, pin: p3 }\n" +
			"  soil: { driver: probe, pin: p4, unit: K }\n  pump: { driver: relay, pin: p1, max_on: 1m }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// What has changed is safe, and closed before another opens it; the lamp stays on.
		if got, want := r.sorted(), "p1 off, p3 off, close p3, open p3, open p4"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		var told []agents.Change
		for len(news) > 0 {
			told = append(told, <-news)
		}
		if !slices.Contains(told, agents.Change{Tools: true, Resources: true}) || slices.Contains(told, agents.Change{URI: things.URI("lamp/on")}) ||
			!slices.Contains(told, agents.Change{URI: things.URI("pump/on")}) {
			t.Errorf("told of %+v", told)
		}
		if s := r.keeper.Status(); len(s) != 3 || s[0].Output != "lamp/on" || s[0].Holder != "ann" || s[0].Left != 230*time.Second || !s[1].Safe || !s[2].Safe {
			t.Errorf("%+v", s)
		}
		r.says(t, "read_points", readAll, "Point:lamp/on Value:true", "Point:fan/on Value:false", "Point:pump/on Value:false", "Point:soil/t Value:2 Unit:K")
		r.says(t, "list_points", `{}`, "Point:pump/on Kind:switch Unit: Description: Device:a relay Min:<nil> Max:<nil> Values:[] Safe:false MaxSeconds:60")
		r.says(t, "switch_output", pumpOn, "invalid", "1m")
		r.says(t, "switch_output", `{"output":"pump/on","on":true}`, "unsafe", "rests at safe")
		time.Sleep(guard.DefaultRest)
		r.says(t, "switch_output", `{"output":"pump/on","on":true}`, "Value:true")

		// The same file once more, in other words, changes nothing.
		r.told()
		r.text = strings.Replace(r.text, "pin: p1, max_on: 1m", "max_on: 1m, pin: 'p1'", 1) + "# the end\n"
		if err := r.Reload(t.Context()); err != nil || r.told() != "" {
			t.Error("a reload of the same has changed something", err)
		}
		synctest.Wait()
		for len(news) > 0 {
			if c := <-news; c.Tools {
				t.Error("a reload of the same is told")
			}
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:true")

		// What is gone is gone, and safe.
		r.text = head + "  soil: { driver: probe, pin: p4, unit: K }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.sorted(), "p1 off, p2 off, close p1, close p2, close p3"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if tools, _ := r.door.Tools(ann); slices.ContainsFunc(tools, func(t agents.Tool) bool { return t.Name == "switch_output" }) {
			t.Error("a tool without outputs is offered")
		}
		r.says(t, "read_points", `{"points":["pump/on"]}`, "invalid")
	})
}

// TestLeaseOutlivesReloads: what a reload does not change keeps its lease, and its value
// without a moment's gap, though its neighbours come, go and change.
func TestLeaseOutlivesReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:true")
		lamp := "  lamp: { driver: relay, pin: p2, max_on: 5m }\n"
		for i, beside := range []string{"", "  pump: { driver: relay, pin: p1 }\n", "  pump: { driver: relay, pin: p1, max_on: 1m }\n", "  pump: { driver: relay, pin: p3 }\n",
			"  soil: { driver: probe, pin: p3 }\n", "  fan: { driver: relay, pin: p3 }\n  pump: { driver: relay, pin: p4 }\n", "  soil: { driver: probe, pin: p1 }\n  fan: { driver: relay, pin: p3, safe: on }\n",
			"  fan: { driver: relay, pin: p1 }\n", "", "  pump: { driver: relay, pin: p1 }\n"} {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r.told()
			r.text = head + beside + lamp
			if i%2 == 1 {
				r.text = head + lamp + beside
			}
			if err := r.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			if did := r.sorted(); strings.Contains(did, "p2") {
				t.Errorf("%q: %s", beside, did)
			}
		}
		r.says(t, "read_points", `{"points":["lamp/on"]}`, "Value:true")
		for _, s := range r.keeper.Status() {
			if s.Output == "lamp/on" && (s.Holder != "ann" || s.Left != 200*time.Second) {
				t.Errorf("%+v", s)
			}
		}
		time.Sleep(200 * time.Second)
		r.says(t, "read_points", `{"points":["lamp/on"]}`, "Value:false")
	})
}

// TestReloadWhoseCloseHangs: a device whose driver hangs as it is closed goes with its
// process: no other driver would get its line.
func TestReloadWhoseCloseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:true")
		hangs, before := make(chan struct{}), r.processes()
		r.change(func() { r.hangs = map[string]chan struct{}{"p1": hangs} })
		r.text = head + "  lamp: { driver: relay, pin: p2, max_on: 5m }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		if now := r.processes(); now != before+1 {
			t.Errorf("%d processes were started", now-before)
		}
		close(hangs)
		r.says(t, "read_points", readAll, "Point:lamp/on Value:false")
	})
}

// TestNotesOnAHangingDisk: while what went to safe cannot be written down, calls that go to
// safe are answered.
func TestNotesOnAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		ctx, cancel := context.WithCancel(t.Context())
		disk, notes, ended := make(chan struct{}), make(chan string, 10), make(chan struct{})
		go func() {
			noteReturns(ctx, r.keeper, func(says string) error { <-disk; notes <- says; return nil })
			close(ended)
		}()
		defer func() { cancel(); <-ended }()
		r.says(t, "switch_output", strings.Replace(lampOn, "300", "1", 1), "Value:true")
		r.says(t, "switch_output", pumpOn, "Value:true")
		time.Sleep(10 * time.Second) // the lamp's lease is over, which is to be written
		for range 3 {
			begun := time.Now()
			if r.says(t, "switch_output", pumpOff, "Value:false"); time.Since(begun) > time.Second {
				t.Errorf("it took %v", time.Since(begun))
			}
		}
		close(disk)
		synctest.Wait()
		if len(notes) != 1 || !strings.Contains(<-notes, "lamp/on") {
			t.Errorf("%d notes", len(notes))
		}
	})
}

// TestReloadWhoseInstallFails: the configuration of before goes on, with what it says, and
// the next reload does not say otherwise.
func TestReloadWhoseInstallFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:true")
		install := r.install
		r.install = func() error { return errors.New("the disk is read-only") }
		r.text = head + "  pump: { driver: relay, pin: p1, max_on: 1m }\n  lamp: { driver: relay, pin: p2, max_on: 5m }\n  fan: { driver: relay, pin: p3 }\n"
		for range 2 {
			if err := r.Reload(t.Context()); err == nil || device.AsFault(err).Kind != device.Unavailable || !strings.Contains(err.Error(), "the disk is read-only") {
				t.Fatalf("%v", err)
			}
			if p, err := r.keeper.Policy("pump/on"); err != nil || p.MaxOn != guard.DefaultMaxOn {
				t.Errorf("%+v, %v", p, err)
			}
			time.Sleep(20 * time.Second)
			r.says(t, "read_points", readAll, "Point:lamp/on Value:true", "Point:soil/t Value:2 Unit:K")
			r.says(t, "read_points", `{"points":["fan/on"]}`, "invalid")
			r.says(t, "switch_output", pumpOn, "Value:true")
		}
		r.install = install
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.says(t, "switch_output", pumpOn, "invalid", "1m")
		r.says(t, "read_points", readAll, "Point:lamp/on Value:true", "Point:fan/on Value:false")
	})
}

// TestReloadKeepsThePast: of what has not changed, and of nothing else.
func TestReloadKeepsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, "  a: { driver: probe, pin: p1 }\n  b: { driver: probe, pin: p2 }\n")
		defer r.end()
		r.text = strings.Replace(r.text, "p2", "p2, scale: 3", 1)
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for point, count := range map[string]int{"a/t": 3, "b/t": 1} {
			all := r.past.Summaries(point, time.Now().Add(-time.Hour), time.Hour)
			if len(all) != 1 || all[0].Count != count {
				t.Errorf("%s: %+v, want %d", point, all, count)
			}
		}
		r.says(t, "read_points", readAll, "Point:a/t Value:2 ", "Point:b/t Value:6 ")
		r.text = head + "  a: { driver: probe, pin: p1 }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.hub.Latest("b/t"); ok || r.past.Summaries("b/t", time.Now().Add(-time.Hour), time.Hour) != nil {
			t.Error("what is gone is still remembered")
		}
	})
}

// TestReloadRefused: a bad file, or one that only a restart can take, changes nothing.
func TestReloadRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", pumpOn, "Value:true")
		r.told()
		good := r.text
		for text, want := range map[string]string{
			"site: { name: x }\ndevices:\n  pump: { driver: relay, pin: p1, max_om: 5s }\n": "test:3:35: pump: there is no key \"max_om\" here; did you mean max_on?",
			"site: [": "test:1:",
			strings.Replace(good, "name: x", "name: y", 1): "site.name was x and is y: restart to change it",
			good + "http: { listen: 127.0.0.1:1234 }\n":    "http is not what it was: restart to change it",
		} {
			r.text = text
			err := r.Reload(t.Context())
			var mistake *config.Error
			if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &mistake) && device.AsFault(err).Kind != device.Invalid {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if got := r.told(); got != "" {
			t.Errorf("it has changed: %s", got)
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:true", "Point:soil/t Value:2 Unit:K")
	})
}

var errNobody = device.Faultf(device.Offline, "nothing answers at p1")

// TestMissing: a device that is not there keeps nobody from starting. Its points are
// faults, its outputs refused, and it is in use by itself once it is there.
func TestMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nothing := device.Faultf(device.Offline, "nothing answers at p3")
		b := &bay{away: map[string]error{"p1": errNobody, "p3": nothing}}
		r := newRig(t, b, threeOf)
		defer r.end()
		// The pump's points are known without hardware, soil's are not.
		r.says(t, "read_points", readAll, "Point:pump/on Value:<nil>", "Quality:fault Why:nothing answers at p1", "Point:lamp/on Value:false")
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[on: fault nothing answers at p1]}", "{Device:lamp Model:a relay Faults:[]}",
			"{Device:soil Model:probe Faults:[nothing answers at p3]}")
		r.says(t, "switch_output", pumpOn, "offline", "nothing answers at p1")
		r.says(t, "switch_output", lampOn, "Value:true")
		r.says(t, "list_points", `{}`, "Point:pump/on Kind:switch")
		r.told()

		time.Sleep(time.Hour)
		b.change(func() { delete(b.away, "p1"); delete(b.away, "p3") })
		time.Sleep(openRetryMax)
		synctest.Wait()
		got := strings.Split(r.told(), ", ")
		slices.Sort(got) // the guard works beside
		if want := []string{"open p1", "open p3", "p1 off", "p2 off"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:false", "Point:soil/t Value:2 Unit:K")
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[]}", "{Device:soil Model:a probe Faults:[]}")
		time.Sleep(guard.DefaultRest)
		r.says(t, "switch_output", pumpOn, "Value:true")
	})
}

// TestMissingAfterReload: what cannot be opened is said, by what is wrong now.
func TestMissingAfterReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{}
		r := newRig(t, b, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:true")
		b.change(func() { b.away["p4"] = errNobody; b.stuck["p2"] = true })
		r.text = head + "  pump: { driver: relay, pin: p4 }\n"
		err := r.Reload(t.Context())
		if err == nil || device.AsFault(err).Kind != device.Offline || !strings.HasPrefix(err.Error(), "the new configuration holds, but ") ||
			!strings.Contains(err.Error(), "the outputs did not go well, look whether they are safe: lamp/on is not known to be at its value: it is stuck") ||
			!strings.Contains(err.Error(), "pump/on is not known to be safe: nothing answers at p1") {
			t.Error(err)
		}
		b.change(func() { b.away["p4"] = errors.New("the bus is gone") })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[on: fault the bus is gone]}")
		r.says(t, "read_points", readAll, "Why:the bus is gone")
	})
}

// TestOpeningIsTriedLessOften: a second, then twice as long, at most five minutes.
func TestOpeningIsTriedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{away: map[string]error{"p1": errNobody}}
		r := newRig(t, b, "  soil: { driver: probe, pin: p1 }\n")
		defer r.end()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		var pauses []int
		for i := range len(b.tries) - 1 {
			pauses = append(pauses, int(b.tries[i+1].Sub(b.tries[i])/time.Second))
		}
		if want := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}; len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
			t.Errorf("pauses of %v s", pauses)
		}
	})
}

// unwritten is a journal that keeps nothing.
type unwritten struct{}

func (unwritten) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (unwritten) Begin(node.Asked) (func(node.Outcome), *node.Outcome, error) {
	return func(node.Outcome) {}, nil, nil
}
func (unwritten) Add(node.Asked, node.Outcome)          {}
func (unwritten) Deny(string, string, device.FaultKind) {}
