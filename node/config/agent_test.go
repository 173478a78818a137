package config

import (
	"strings"
	"testing"
	"time"
)

func agentsOf(t *testing.T, section string) []Agent {
	t.Helper()
	cfg, err := Parse("a.yaml", []byte("site: { name: a }\n"+section), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Agents
}

// TestAgentDigest: it is another for all that says something else, and the same wherever it stands.
func TestAgentDigest(t *testing.T) {
	first := agentsOf(t, "agents: { a: { kind: x, may: 'read *', steps: [ { set: { b: 1 }, for: 5m }, { wait: 1s } ] } }")[0].Digest()
	for section, same := range map[string]bool{
		"# moved\nagents:\n  a:\n    steps:\n      - for: 5m\n        set: { b: 1 }\n      - { wait: 1s }\n    kind: x\n    may: read *": true,
		"agents: { b: { kind: x, may: 'read *', steps: [ { set: { b: 1 }, for: 5m }, { wait: 1s } ] } }":                                 false,
		"agents: { a: { kind: x, may: 'read a', steps: [ { set: { b: 1 }, for: 5m }, { wait: 1s } ] } }":                                 false,
		"agents: { a: { kind: x, may: 'read *', steps: [ { wait: 1s }, { set: { b: 1 }, for: 5m } ] } }":                                 false,
		"agents: { a: { kind: x, may: 'read *', steps: [ { set: { b: 1 }, for: 5m, wait: 1s } ] } }":                                     false,
		"agents: { a: { kind: x, may: 'read *', steps: [ { set: { b1: 1 }, for: 5m }, { wait: 1s } ] } }":                                false,
	} {
		if got := agentsOf(t, section)[0].Digest(); (got == first) != same {
			t.Errorf("%s: the same is %t", section, got == first)
		}
	}
}

// TestAgentErrorAt: a mistake within a list of an agent is told at its place, or near it.
func TestAgentErrorAt(t *testing.T) {
	a := agentsOf(t, "agents:\n  a:\n    kind: x\n    steps:\n      - { wait: 1s }\n      - { set: { b: 1 } }")[0]
	for key, want := range map[string]string{
		"": "a.yaml:3:3", "other": "a.yaml:3:3", "kind": "a.yaml:4:11", "steps": "a.yaml:6:7", "steps[0].wait": "a.yaml:6:17", "steps[1].set.b": "a.yaml:7:21",
		"steps[1].set.c": "a.yaml:7:16", "steps[1].if": "a.yaml:7:9", "steps[2]": "a.yaml:6:7", "steps[-1]": "a.yaml:6:7", "steps[x].y": "a.yaml:6:7",
	} {
		if got := a.Errorf(key, "wrong").Error(); !strings.HasPrefix(got, want+":") {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// TestAgentTags: they are few, plain and unique, and not announced unless that is written.
func TestAgentTags(t *testing.T) {
	if a := agentsOf(t, "agents: { a: { kind: x, tags: [irrigation, drip-2] } }")[0]; len(a.Tags) != 2 || a.Tags[1] != "drip-2" || a.Listed {
		t.Errorf("%+v", a)
	}
	if a := agentsOf(t, "agents: { a: { kind: x, listed: on } }")[0]; !a.Listed {
		t.Errorf("%+v", a)
	}
	for _, tags := range []string{"[A]", "[a b]", "['']", "[a/b]", "[a_b]", "[" + strings.Repeat("a", 25) + "]", "[a, a]", "[a,b,c,d,e,f,g,h,i]", "[ä]", "{ a: 1 }"} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\nagents: { a: { kind: x, tags: "+tags+" } }"), nil); err == nil {
			t.Errorf("%s is accepted", tags)
		}
	}
}

// TestAgentDescription: it is a sentence.
func TestAgentDescription(t *testing.T) {
	if a := agentsOf(t, "agents: { a: { kind: x, description: waters both beds } }")[0]; a.Description != "waters both beds" {
		t.Errorf("%+v", a)
	}
	for _, text := range []string{strings.Repeat("x", maxDescription+1), `a\u001b[2J`, `two\nlines`} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\nagents: { a: { kind: x, description: \""+text+"\" } }"), nil); err == nil {
			t.Errorf("%.20q is accepted", text)
		}
	}
}

// TestBridge: the section mqtt is one agent of its own kind.
func TestBridge(t *testing.T) {
	a := agentsOf(t, "mqtt: { broker: \"mqtts://b\", may: read *, hold: 1h }")
	var own struct {
		Broker string        `json:"broker"`
		Hold   time.Duration `json:"hold"`
	}
	if err := a[0].Decode(&own); err != nil || len(a) != 1 || a[0].Name != MQTT || a[0].Kind != MQTT || a[0].May != "read *" || own.Hold != time.Hour {
		t.Errorf("%+v, %v, %v", a, own, err)
	}
	for _, text := range []string{"mqtt:\n", "mqtt: on\n", "mqtt: { broker: a, kind: rule }\n", "agents: { mqtt: { kind: rule } }\n", "agents: { x: { kind: mqtt } }\n"} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\n"+text), nil); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestReporter: the section aios is one agent of its own kind, and without it there is none.
func TestReporter(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "agents:\n": 0, "aios: { registry: \"https://a.example\", may: ask beds, description: x }\n": 1,
	} {
		s, err := Parse("a.yaml", []byte("site: { name: a }\n"+text), nil)
		if err != nil || len(s.Agents) != want {
			t.Errorf("%q: %v, %v", text, s, err)
			continue
		}
		for _, a := range s.Agents {
			var own struct {
				Registry string `json:"registry"`
			}
			if err := a.Decode(&own); err != nil || a.Name != AIOS || a.Kind != AIOS || a.May != "ask beds" || own.Registry != "https://a.example" {
				t.Errorf("%+v, %v, %v", a, own, err)
			}
		}
	}
	for _, text := range []string{"aios:\n", "aios: on\n", "aios: { registry: a, kind: rule }\n", "aios: { registry: a, tags: [x] }\n", "agents: { aios: { kind: rule } }\n", "agents: { x: { kind: aios } }\n"} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\n"+text), nil); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
