package hosted

import (
	"context"
	"slices"
	"testing"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"

	"github.com/go-json-experiment/json/jsontext"
)

// busy is an agent that takes tasks.
type busy struct{ probe }

func (*busy) Skills() []task.Skill { return []task.Skill{{ID: "run", Tags: []string{"own"}}} }
func (*busy) Work(context.Context, agents.Principal, agents.Site, task.Work) (jsontext.Value, error) {
	return nil, nil
}

// TestWorkers: those that take tasks are listed as they are configured, and each change is told.
func TestWorkers(t *testing.T) {
	changes := 0
	kinds := []agent.Kind{{Name: "probe", New: func() agent.Agent { return &probe{} }}, {Name: "busy", New: func() agent.Agent { return &busy{} }}}
	m := New(Options{
		Kinds: func(*config.Site) []agent.Kind { return kinds }, Permit: func(map[string][]access.Permission) error { return nil },
		Tell: func(map[string]node.Hosted) {}, Keep: func([]string) error { return nil }, OnChange: func() { changes++ },
	})
	apply := func(section string) []Worker {
		t.Helper()
		if err := m.Apply(parse(t, section)); err != nil {
			t.Fatal(err)
		}
		return m.Workers()
	}
	one := apply("agents: { a: { kind: probe }, b: { kind: busy, description: works } }")
	if len(one) != 1 || one[0].Name != "b" || one[0].Description != "works" || one[0].Self.ID != "busy:b" || one[0].Paused || changes != 1 {
		t.Errorf("%+v, %d changes", one, changes)
	}
	if err := m.Pause("b"); err != nil || !m.Workers()[0].Paused || changes != 2 {
		t.Errorf("%v, %d changes", err, changes)
	}
	if err := m.Resume("b"); err != nil || m.Workers()[0].Paused || changes != 3 {
		t.Errorf("%v, %d changes", err, changes)
	}
	same, other := apply("agents:\n  b: { description: works, kind: busy }"), apply("agents: { b: { kind: busy, text: x } }")
	if same[0].Digest != one[0].Digest || same[0].Worker != one[0].Worker || other[0].Digest == one[0].Digest || changes != 5 {
		t.Errorf("%+v, %+v, %d changes", same, other, changes)
	}
	tagged := apply("agents: { b: { kind: busy, tags: [x, own], listed: true }, c: { kind: busy, tags: [y] } }")
	if s := tagged[0].Tagged(); len(s) != 1 || !slices.Equal(s[0].Tags, []string{"own", "x"}) || !slices.Equal(tagged[0].Skills()[0].Tags, []string{"own"}) {
		t.Errorf("%+v", s)
	}
	if all := m.Listed(); !slices.Equal(all, []string{"agent/busy", "skill/own", "skill/x"}) {
		t.Errorf("listed are %v", all)
	}
	if err := m.Pause("b"); err != nil || m.Listed() != nil {
		t.Errorf("%v; of a paused agent %v is listed", err, m.Listed())
	}
	for _, key := range []string{"listed: true", "tags: [x]"} {
		if err := m.Apply(parse(t, "agents: { a: { kind: probe, "+key+" } }")); err == nil {
			t.Errorf("%s is accepted of an agent that cannot be asked", key)
		}
	}
	if all := apply("devices:"); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
