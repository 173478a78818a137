package config

import (
	"strings"
	"testing"
)

// TestAgentText writes agents as text and parses it: nothing is lost, and renamed addresses are
// found in keys, conditions and lists.
func TestAgentText(t *testing.T) {
	const file = `site: { name: a }
agents:
  all:
    kind: rule
    may: set house/heater
    when: 'climate/temperature < 5 Cel and house-2/heater is on or weekday between mon..fri'
    at: "*/10 8-18 * * mon-fri"
    hold: { house/heater: on, "house/vent": 40 }
    quoted: ["12", '1: 2', "a\nb # c", "- x", "", "ä \"ö\" \\"]
    plain: [12, 0x10, 1.10, -3, ~, on, off, null, [], {}, [1, [2]]]
    deep: [{ set: { lamp/level: 40 }, for: 2h }, { set: { lamp/level: 10 } }]
    text: |
      first
        second
    folded: one
      two, {three}
`
	cfg, err := Parse("a.yaml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Agents[0]
	again, err := ParseAgent("text", a.Name, a.Kind, a.May, []byte(a.Text()))
	if err != nil {
		t.Fatalf("%v\n%s", err, a.Text())
	}
	own := only(a.keys.entries(), "when", "at", "hold", "quoted", "plain", "deep", "text", "folded")
	if !sameEntries(own, again.definition()) || !a.Same(again) {
		t.Errorf("something is lost:\n%s", a.Text())
	}
	for _, n := range []*node{own[4].value, again.definition()[4].value} {
		for i, quoted := range []bool{false, false, false, false} {
			if n.items()[i].value.quoted != quoted {
				t.Errorf("%q is quoted: %v", n.items()[i].value.text, !quoted)
			}
		}
	}
	there := func(address string) string {
		switch address {
		case "house/heater":
			return "need/heater"
		case "climate/temperature":
			return "need/t"
		case "lamp/level":
			return "need/lamp"
		}
		return address
	}
	text := again.Renamed(there).Text()
	for word, count := range map[string]int{"need/heater": 1, "need/t ": 1, "need/lamp": 2, "house-2/heater": 1, "house/heater": 0, "climate": 0, "house/vent": 1} {
		if got := strings.Count(text, word); got != count {
			t.Errorf("%q is %d times in it, want %d:\n%s", word, got, count, text)
		}
	}
	if !again.Same(again.Renamed(func(address string) string { return address })) {
		t.Error("names that stay make another agent")
	}
}

// TestAgentTextRefused: a text cannot choose what its owner chooses, and is YAML of few features.
func TestAgentTextRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a kind":            "kind: mcp\ncommand: rm",
		"an announcement":   "when: a/b\nlisted: true",
		"a permission":      "when: a/b\nmay: set *",
		"a list":            "- when: a/b",
		"nothing":           "",
		"an anchor":         "a: &x [1]\nb: *x",
		"a tag":             "a: !!binary aGk=",
		"a merge":           "a: { <<: b }",
		"twice":             "when: a/b\nwhen: c/d",
		"two documents":     "when: a/b\n---\nkind: mcp",
		"a deep nest":       "a: " + strings.Repeat("[", 100_000),
		"a wide list":       "a: [" + strings.Repeat("1,", 100_000) + "]",
		"text turned round": "a: [\"x\\u202ey\"]",
		"a hidden key":      "\"x\\u200by\": 1",
		"a deep nest two":   strings.Repeat("- ", 100_000),
	} {
		if _, err := ParseAgent("text", "x", "rule", "", []byte(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// FuzzAgentText: a definition is the same after it was written and parsed again.
func FuzzAgentText(f *testing.F) {
	f.Add("when: a/b < 5 Cel\nhold: { a/c: on }")
	f.Add("a: [1, '2', {b: \"\\x41\"}]\nc: |\n  x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		a, err := ParseAgent("text", "x", "rule", "", []byte(text))
		if err != nil {
			return
		}
		b, err := ParseAgent("text", "x", "rule", "", []byte(a.Text()))
		if err != nil || !a.Same(b) {
			t.Errorf("%q is written as %q: %v", text, a.Text(), err)
		}
	})
}
