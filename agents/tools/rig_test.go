package tools_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/transport/rpc"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// shelf is the history as a test has put it there.
type shelf struct {
	past    map[string][]device.Summary
	changes map[string][]device.Change

	from, to time.Time // what was asked for last
	steps    int
}

func (*shelf) Record(device.Reading) {}

func (s *shelf) Summaries(address string, from, to time.Time, steps int) ([]device.Summary, time.Duration, error) {
	s.from, s.to, s.steps = from, to, steps
	return s.past[address], to.Sub(from) / time.Duration(steps), nil
}

func (s *shelf) Changes(address string, from, to time.Time, yield func(device.Change) bool) {
	for _, c := range s.changes[address] {
		if !c.At.Before(from) && c.At.Before(to) && !yield(c) {
			return
		}
	}
}

func (s *shelf) ValueAt(address string, at time.Time) (found device.Change, ok bool) {
	for _, c := range s.changes[address] {
		if !c.At.After(at) {
			found, ok = c, true
		}
	}
	return found, ok
}

// rig is a catalog over a node with simulated devices and a guard that runs.
type rig struct {
	*tools.Catalog
	*shelf
	node  *node.Node
	site  node.Site
	guard *guard.Guard
	hub   *node.Hub
	who   agents.Principal // asks
	feed  chan device.Reading
	stop  func()
}

// put feeds a reading of a point to the site.
func (r *rig) put(address string, reading device.Reading) {
	reading.Point = address
	r.feed <- reading
	synctest.Wait()
}

// feeder passes readings on.
type feeder chan device.Reading

func (f feeder) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reading := <-f:
			emit(reading)
		}
	}
}

// unwritten is a journal that keeps nothing.
type unwritten struct{}

func (unwritten) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (unwritten) Begin(node.Asked) (func(node.Outcome), *node.Outcome, error) {
	return func(node.Outcome) {}, nil, nil
}
func (unwritten) Add(node.Asked, node.Outcome)          {}
func (unwritten) Deny(string, string, device.FaultKind) {}
func (unwritten) Recent(string) []node.Recorded         { return nil }

// wire opens simulated devices: pairs of a name and a model.
func wire(t testing.TB, namesAndModels ...string) []node.Device {
	t.Helper()
	var all []node.Device
	for i := 0; i < len(namesAndModels); i += 2 {
		c := sim.Driver().Config().(*sim.Config)
		c.Model = namesAndModels[i+1]
		d, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		all = append(all, thing(namesAndModels[i], d))
	}
	return all
}

// thing is a device that its owner wants as it is.
func thing(name string, d device.Device) node.Device {
	return node.Device{Name: name, Device: d, Description: d.Describe(), Busy: device.NewMutex()}
}

func newRig(t testing.TB, devices []node.Device, bend ...func(*guard.Policy)) *rig {
	t.Helper()
	dir := t.TempDir()
	latch := guard.Latch{File: filepath.Join(dir, "armed"), Flag: filepath.Join(dir, "stopped")}
	if err := latch.Reset(); err != nil {
		t.Fatal(err)
	}
	var actuated []guard.Actuated
	for _, th := range devices {
		var policies []guard.Policy
		for _, p := range th.Device.Describe().Points {
			if p.Kind.Output() {
				policy := guard.NewPolicy(th.Name, p)
				for _, b := range bend {
					b(&policy)
				}
				policies = append(policies, policy)
			}
		}
		if policies != nil {
			actuated = append(actuated, guard.Actuated{Actuator: th.Device.(device.Actuator), Policies: policies})
		}
	}
	g, err := guard.New(actuated, latch)
	if err != nil {
		t.Fatal(err)
	}
	s, feed := &shelf{past: map[string][]device.Summary{}, changes: map[string][]device.Change{}}, make(chan device.Reading)
	hub := node.NewHub(nil, s, agents.PointURI)
	n := node.New(node.Parts{Hub: hub, Journal: unwritten{}})
	site := node.Site{Name: "test", Version: "1.2", Simulated: true, Started: time.Now(), Devices: devices, History: s, Outputs: g}
	if err := n.Replace(site); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var sampling sync.WaitGroup
	sampling.Go(func() { hub.Sample(ctx, nil, feeder(feed)) })
	go func() { done <- g.Run(ctx) }()
	return &rig{tools.New(n, n), s, n, site, g, hub, anna, feed, func() {
		cancel()
		sampling.Wait()
		if err := <-done; err != nil {
			t.Errorf("the guard: %v", err)
		}
	}}
}

// seen are permissions for whatever sees is true for, and nothing else.
type seen struct {
	node.Access
	sees func(agents.Ask) bool
}

func (s seen) CanSee(_ agents.Principal, ask agents.Ask) bool { return s.sees(ask) }
func (seen) Version(agents.Principal) uint64                  { return 1 }
func (seen) PassedOn(string, string) bool                     { return false }
func (seen) Root(p agents.Principal) string                   { return p.ID }
func (seen) AgentName(string) string                          { return "" }
func (seen) Owns(string) bool                                 { return false }
func (seen) MayHold(string, string) bool                      { return true }
func (s seen) MayRenew(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	return s.May(p, ask)
}
func (s seen) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if !s.sees(ask) {
		return agents.Limits{}, device.Faultf(device.Denied, "you lack a permission for this")
	}
	return agents.Limits{}, nil
}
func (s seen) Take(p agents.Principal, ask agents.Ask, _ bool) (agents.Limits, error) {
	return s.May(p, ask)
}

// seeing is the rig as anna has it, who sees that alone.
func (r *rig) seeing(t *testing.T, sees func(agents.Ask) bool) *rig {
	t.Helper()
	n := node.New(node.Parts{Hub: r.hub, Journal: unwritten{}, Access: seen{sees: sees}})
	if err := n.Replace(r.site); err != nil {
		t.Fatal(err)
	}
	part := *r
	part.Catalog, part.node = tools.New(n, n), n
	return &part
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (r *rig) tools() []tools.Tool { return must(r.Catalog.Tools(context.Background(), r.who)) }
func (r *rig) resources() []tools.Resource {
	return must(r.Catalog.Resources(context.Background(), r.who))
}
func (r *rig) templates() []tools.Template {
	return must(r.Catalog.Templates(context.Background(), r.who))
}
func (r *rig) prompts() []tools.Prompt { return must(r.Catalog.Prompts(context.Background(), r.who)) }

// addresses are those of all points.
func (r *rig) addresses() (all []string) {
	for _, d := range r.site.Devices {
		for _, p := range d.Description.Points {
			all = append(all, device.Address(d.Name, p.Name))
		}
	}
	return all
}

// greenhouse runs a test under synctest over a greenhouse and a climate sensor,
// once its outputs have rested and may be moved.
func greenhouse(t *testing.T, do func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wire(t, "greenhouse", "greenhouse", "outside", "climate"))
		defer r.stop()
		time.Sleep(time.Minute)
		do(t, r)
	})
}

// strict decodes arguments as the protocol does.
type strict struct{ rpc.Raw }

func (s strict) Decode(into any) error { return s.DecodeStrict(into) }

var anna = agents.Principal{ID: "anna"}

func (r *rig) call(p agents.Principal, tool, args string) (tools.Result, error) {
	return r.Call(context.Background(), p, tools.Call{Tool: tool, Args: strict{rpc.RawJSON([]byte(args))}, Note: func(tools.Note) {}})
}

// says calls a tool and returns its value as JSON, held against its own schema, or
// its fault as "kind: sentence".
func (r *rig) says(t *testing.T, tool, args string) string {
	t.Helper()
	res, err := r.call(anna, tool, args)
	if err != nil {
		f := device.AsFault(err)
		return string(f.Kind) + ": " + f.Msg
	}
	text, err := json.Marshal(res.Value)
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range r.tools() {
		if tl.Name == tool {
			fits(t, tool, tl.Output, text)
		}
	}
	return string(text)
}

// fits fails unless a value matches its schema and has nothing that the schema does
// not name.
func fits(t *testing.T, what string, schema, value []byte) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	tighten(&s)
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := r.Validate(v); err != nil {
		t.Errorf("%s: its result does not match its schema: %v\n%s", what, err, value)
	}
}

func tighten(s *jsonschema.Schema) {
	if s.Type == "object" {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	for _, p := range s.Properties {
		tighten(p)
	}
	if s.Items != nil {
		tighten(s.Items)
	}
}
