package devices

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/fake"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/transport/rpc"
)

// bay is fake hardware that a test plugs, unplugs and watches: parts by their pins, each with
// one user at most.
type bay struct {
	mu    sync.Mutex
	away  map[string]error         // why a pin's part cannot be opened
	hangs map[string]chan struct{} // until when a pin's driver hangs as it opens or closes
	hung  []string                 // each time that one did
	owned map[string]bool
	at    map[string]device.Value // values of relays, and of probes that differ from 2
	stuck map[string]bool         // relays that do not follow
	log   []string
	tries []time.Time // to open something
	wrong []string    // what must never happen
	fakes bool        // the site is simulated: no part is ever opened
}

func (b *bay) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (b *bay) note(format string, args ...any) { b.log = append(b.log, fmt.Sprintf(format, args...)) }

// told returns the events since the last call.
func (b *bay) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	log := b.log
	b.log = nil
	return strings.Join(log, ", ")
}

// sorted is told with concurrent events in the order of moves, closing, opening.
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

// hang blocks while the pin's driver hangs; the bay is locked.
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

// use is an open part.
func (p *part) use() {
	if p.closed {
		p.b.wrong = append(p.b.wrong, p.Pin+" was used after it was closed")
	}
}

// relayConfig configures a switch whose points are known without hardware.
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

// probeConfig configures a sensor whose points are known only after Open.
type probeConfig struct{ part }

func (c *probeConfig) Open(context.Context) (device.Device, error) { return (*probe)(c), c.open() }

func (*probeConfig) Guess([]string) device.Description { return (*probe)(nil).Describe() }

type probe probeConfig

func (p *probe) Describe() device.Description {
	return device.Description{Model: "a probe", Points: []device.Point{{Name: "t", Kind: device.KindMeasurement, Unit: "V"}}}
}
func (p *probe) Sample(context.Context) ([]device.Reading, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.use()
	v := device.Number(2)
	if at, ok := p.b.at[p.Pin]; ok {
		v = at
	}
	return []device.Reading{{Point: "t", Value: v, Quality: device.Good, At: time.Now()}}, nil
}

// rig is a site without carriers, on a bay.
type rig struct {
	*bay
	*Manager
	past *history.History
	node *node.Node
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
	drivers := b.drivers()
	if b.fakes {
		drivers = fake.Drivers(drivers)
	}
	read := func() (*config.Site, error) { return config.Parse("test", []byte(r.text), drivers) }
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Reset(); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	files := testFiles(t.TempDir())
	if err := files.TakeOver(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	var started atomic.Int32
	r.processes = func() int { return int(started.Load()) }
	outputs := proc.NewKeeper(plan.policies, latch, func() (proc.Process, error) {
		started.Add(1)
		text, err := os.ReadFile(files.Plan)
		if err != nil {
			return proc.Process{}, err
		}
		cfg, err := config.ParsePlan(files.Plan, text, b.drivers())
		if err != nil {
			return proc.Process{}, err
		}
		return inProcess(cfg, latch, b.drivers()), nil
	})
	r.past = history.New(nil)
	hub := node.NewHub(outputs, r.past, agents.PointURI)
	r.node = node.New(node.Parts{Hub: hub, Journal: unwritten{}})
	r.Manager, err = Open(t.Context(), Options{
		Board: board.New(), Config: cfg, Read: read, Plan: plan, Files: files, Outputs: outputs, Hub: hub, KeepHistory: r.past.Keep,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(func(all []node.Device) error {
		return r.node.Replace(node.Site{Name: "x", Devices: all, History: r.past, Outputs: outputs})
	}); err != nil {
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
		r.Close()
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

// inProcess runs the guard inside the test's process.
func inProcess(cfg *config.Site, latch guard.Latch, drivers []driver.Driver) proc.Process {
	ours, its := net.Pipe()
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- runGuard(ctx, cfg, latch, func(ctx context.Context, s *guardServer) error {
			return s.serve(ctx, its, drivers)
		})
	}()
	return proc.Process{Conn: ours, Kill: kill, Wait: func() error { defer kill(); return <-ended }}
}

var ann = agents.Principal{ID: "ann"}

// call returns a tool's result, or its error, as text.
func (r *rig) call(t *testing.T, tool, args string) string {
	t.Helper()
	res, err := tools.New(r.node, r.node).Call(t.Context(), ann, tools.Call{Tool: tool, Args: rpc.RawJSON([]byte(args)), Note: func(tools.Note) {}})
	if err != nil {
		return string(device.AsFault(err).Kind) + ": " + err.Error()
	}
	return fmt.Sprintf("%+v", res.Value)
}

// says calls a tool after all other activity has settled, and expects the wants in its result.
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

// unwritten is a journal that stores nothing.
type unwritten struct{}

func (unwritten) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (unwritten) Begin(node.Asked) (func(node.Outcome), *node.Outcome, error) {
	return func(node.Outcome) {}, nil, nil
}
func (unwritten) Add(node.Asked, node.Outcome)          {}
func (unwritten) Deny(string, string, device.FaultKind) {}
func (unwritten) Recent(string) []node.Recorded         { return nil }
