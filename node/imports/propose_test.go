package imports

import (
	"context"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/bundle"
)

// TestPropose: the text of a rule becomes a draft with the points that it names, which runs nothing
// before an owner accepts it. A text that is no rule, or names no point of the site, is refused. A
// draft replaces no other.
func TestPropose(t *testing.T) {
	r := newRig(t, here)
	propose := func(name, may, text string) (Draft, error) {
		return r.Propose(context.Background(), agents.Principal{ID: "llm:gpt"}, name, may, text, func(c bundle.Content) ([]byte, error) {
			c.Created = 1_790_000_000
			return seal(t, c), nil
		})
	}
	const text = "when: climate/temperature < 4 Cel\nuntil: climate/temperature > 6 Cel\nhold: { house/vent: 40 }\n"
	before := r.running()
	d, err := propose("airing", "set house/vent max 5m, set house/heater", text)
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "airing" || d.Wish != "set house/vent max 5m" || d.May != "" || r.running() != before+", rule:airing draft 0" || len(r.permitted["rule:airing"]) != 0 {
		t.Errorf("%+v, running %s", d, r.running())
	}
	if c, ok, err := r.Store.Draft("airing"); err != nil || !ok || strings.Join(c.Reads, " ") == "" {
		t.Errorf("%+v %v", c, err)
	}
	for name, bad := range map[string][2]string{
		"no rule":      {"set house/vent", "steps: [{ wait: 1s }]"},
		"no YAML":      {"set house/vent", "when: ["},
		"no point":     {"set house/vent", strings.ReplaceAll(text, "climate/temperature", "barn/temperature")},
		"its own kind": {"set house/vent", "kind: mcp\ncommand: [sh]\n"},
		"its own may":  {"set house/vent", "may: set house\n" + text},
		"a wrong wish": {"everything", text},
		"nothing":      {"", ""},
	} {
		if _, err := propose("x", bad[0], bad[1]); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, taken := range []string{"airing", "cold"} {
		if _, err := propose(taken, "set house/vent", strings.Replace(text, "40", "50", 1)); err == nil {
			t.Errorf("%s is replaced", taken)
		}
	}
	d, err = r.Accept(Acceptance{Name: "airing", May: "set house/vent max 1m"})
	if err != nil || !strings.Contains(r.running(), "rule:airing runs") {
		t.Errorf("%+v %v, running %s", d, err, r.running())
	}
}
