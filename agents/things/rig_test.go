package things

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/transport/rpc"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// shelf is Readings and History as a test has put them there.
type shelf struct {
	latest map[string]device.Reading
	past   map[string][]device.Summary

	from time.Time // what was asked for last
	step time.Duration
}

func (s *shelf) Latest(address string) (device.Reading, bool) {
	r, ok := s.latest[address]
	return r, ok
}

func (s *shelf) Summaries(address string, from time.Time, step time.Duration) []device.Summary {
	s.from, s.step = from, step
	return s.past[address]
}

// rig is an agent over simulated devices and a guard that runs.
type rig struct {
	*Agent
	*shelf
	guard *guard.Guard
	stop  func()
}

// wire opens simulated devices: pairs of a name and a model.
func wire(t testing.TB, namesAndModels ...string) []Thing {
	t.Helper()
	var all []Thing
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
func thing(name string, d device.Device) Thing {
	return Thing{Name: name, Device: d, Description: d.Describe(), Turn: device.NewTurn()}
}

func newRig(t testing.TB, things []Thing, bend ...func(*guard.Policy)) *rig {
	t.Helper()
	dir := t.TempDir()
	latch := guard.Latch{File: filepath.Join(dir, "armed"), Flag: filepath.Join(dir, "stopped")}
	if err := latch.Reset(); err != nil {
		t.Fatal(err)
	}
	var actuated []guard.Actuated
	for _, th := range things {
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
	s := &shelf{latest: map[string]device.Reading{}, past: map[string][]device.Summary{}}
	a, err := New(Site{Name: "test", Version: "1.2", Simulated: true, Started: time.Now(), Things: things, Readings: s, History: s, Outputs: g})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return &rig{a, s, g, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the guard: %v", err)
		}
	}}
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

func (r *rig) call(p agents.Principal, tool, args string) (agents.Result, error) {
	return r.Call(context.Background(), p, agents.Call{Tool: tool, Args: strict{rpc.RawJSON([]byte(args))}, Note: func(agents.Note) {}})
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
	for _, tl := range r.Tools() {
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
