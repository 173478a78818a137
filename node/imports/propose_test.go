package imports

import (
	"context"
	"errors"
	"fmt"
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
		return r.Propose(context.Background(), agents.Principal{ID: "llm:gpt"}, "ann", name, may, text, func(c bundle.Content) ([]byte, error) {
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
	if d.Name != "airing" || d.Author != "llm:gpt, asked by ann" || d.Wish != "set house/vent max 5m" || d.May != "" || r.running() != before+", rule:airing draft 0" || len(r.permitted["rule:airing"]) != 0 {
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

// TestProposedPlaces: drafts by agents of the site have few places, and none of the owner's.
func TestProposedPlaces(t *testing.T) {
	r := newRig(t, here)
	propose := func(agent, name string) error {
		text := "when: climate/temperature < 4 Cel\nuntil: climate/temperature > 6 Cel\nhold: { house/vent: 40 }\ndescription: " + name + "\n"
		_, err := r.Propose(context.Background(), agents.Principal{ID: agent}, "ann", name, "set house/vent", text, func(c bundle.Content) ([]byte, error) {
			c.Created = 1_790_000_000
			return seal(t, c), nil
		})
		return err
	}
	made := make(map[string]int)
	for _, agent := range []string{"llm:a", "llm:b", "llm:c", "llm:d", "llm:e"} {
		for i := range 6 {
			if propose(agent, strings.ReplaceAll(agent, "llm:", "of-")+string(rune('0'+i))) == nil {
				made[agent]++
			}
		}
	}
	if made["llm:a"] != 4 || made["llm:b"] != 4 || len(made) != 3 {
		t.Errorf("%v", made)
	}
	for i := range 32 {
		c := frost()
		c.Name = fmt.Sprintf("own%d", i)
		if _, err := r.bring(Request{Bundle: seal(t, c)}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if _, err := r.Accept(Acceptance{Name: "of-a0", May: "set house/vent"}); err == nil {
		t.Error("an acceptance makes one more than are kept")
	}
	if err := errors.Join(r.Remove("own0"), r.Remove("of-b0")); err != nil {
		t.Error(err)
	}
	if d, err := r.Accept(Acceptance{Name: "of-a0", May: "set house/vent"}); err != nil || d.Author != "llm:a, asked by ann" {
		t.Errorf("%+v %v", d, err)
	}
	if err := propose("llm:a", "again"); err != nil {
		t.Errorf("an accepted one keeps the place of a draft: %v", err)
	}
}
