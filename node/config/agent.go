package config

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"agentsite/agents/task"
)

// Agent is one entry of the agents section. This package does not know the kinds of agents, their keys
// and the meaning of May: Decode and Errorf report mistakes in them at the lines of the file.
type Agent struct {
	Name string
	Kind string
	May  string // the agent's permissions, in the words of grants; "" for none
	// Description tells people and models what the agent is for; "" for none.
	Description string
	// Tags are words by which others look for what the agent can be asked for; Listed is whether the
	// site announces them.
	Tags   []string
	Listed bool

	src  *source
	at   pos // of the name
	keys packed
}

// agentPart holds the keys that every agent has.
type agentPart struct {
	Kind        string   `json:"kind" jsonschema:"what kind of agent this is"`
	May         string   `json:"may,omitempty" jsonschema:"what the agent may do, as in a grant: read climate, set house/heater max 5m; nothing when not written"`
	Description string   `json:"description,omitempty" jsonschema:"what the agent is for, in a sentence for people and models"`
	Tags        []string `json:"tags,omitempty" jsonschema:"words by which others look for what the agent can be asked for, such as irrigation"`
	Listed      bool     `json:"listed,omitempty" jsonschema:"whether the site announces the agent's kind and tags to its realm, and in its public record where it has one; no when not written"`
}

// agentKeys are those of agentPart.
var agentKeys = keysOf(reflect.TypeFor[agentPart]())

// AIOS, MQTT, Notify, Export, Power and HomeAssistant are the sections of the one agent of that kind, which has its
// name, too.
const (
	AIOS   = "aios"
	MQTT   = "mqtt"
	Notify = "notify"
	Export = "export"
	Power  = "power"

	HomeAssistant = "homeassistant"
)

// sectioned are the agents that have a section of their own, by its name, with an example of what is in it.
var sectioned = map[string]struct{ what, example string }{
	AIOS:   {"the reporter to an AIOS registry", "registry: …, may: …"},
	MQTT:   {"the bridge to an MQTT broker", "broker: …, may: …"},
	Notify: {"what tells people", "to: { phone: { ntfy: … } }"},
	Power:  {"what powers the machine off", "off_when: ups/charge < 10 %"},
	Export: {"what sends the history to a store", "remote_write: { url: … }, may: …"},

	HomeAssistant: {"Home Assistant as a caller", "may: read *"},
}

const (
	// maxDescription bounds the description of an agent, which models are told.
	maxDescription = 200
	// maxTags bounds its tags, of which a site announces few.
	maxTags = 8
)

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// agents reads the section of that name. It may be empty.
func (r *report) agents(e entry) (all []Agent) {
	for _, e := range (decoder{report: r, where: "agents"}).named(e, "agent", "clock: { kind: … }") {
		d := decoder{report: r, where: e.key}
		if !d.areKeys(e.value, "kind: …") {
			continue
		}
		a := d.agent(e.at, e.value.entries)
		for name, s := range sectioned {
			if a.Kind == name || a.Name == name {
				d.fail(e.at, "%s has a section of its own, beside agents: \"%s: { %s }\"; no other agent has its name",
					s.what, name, s.example)
			}
		}
		all = append(all, a)
	}
	return all
}

// sectioned reads the section of an agent that has one.
func (r *report) sectioned(e entry) []Agent {
	d, example := decoder{report: r, where: e.key}, sectioned[e.key].example
	if !d.areKeys(e.value, example) {
		return nil
	}
	for _, of := range only(e.value.entries, "kind", "tags", "listed") {
		d.fail(of.at, "there is no key %q here; write %s", of.key, example)
	}
	return []Agent{d.agent(e.at, append([]entry{scalarEntry("kind", e.key, e.at)}, e.value.entries...))}
}

// agent decodes the keys that every agent has, of the agent at that place.
func (d decoder) agent(at pos, entries []entry) Agent {
	var own agentPart
	d.fields(at, "", only(entries, agentKeys...), reflect.ValueOf(&own).Elem())
	d.described(own, entries)
	return Agent{d.where, own.Kind, own.May, own.Description, own.Tags, own.Listed, d.src, at, pack(entries)}
}

// described checks the description and the tags of an agent.
func (d decoder) described(own agentPart, entries []entry) {
	if len(own.Description) > maxDescription || !printable(own.Description) {
		at, _ := find(entries, "description")
		d.fail(at.value.at, "description takes at most %d characters of plain text", maxDescription)
	}
	tags, _ := find(entries, "tags")
	for i, tag := range own.Tags {
		switch {
		case i == maxTags:
			d.fail(tags.value.at, "tags takes at most %d words", maxTags)
		case !task.IsTag(tag):
			d.fail(tags.value.at, "%.40q cannot be a tag: use a-z, 0-9 and -, at most 24 of them, such as irrigation", tag)
		case slices.Contains(own.Tags[:i], tag):
			d.fail(tags.value.at, "the tag %s stands there twice", tag)
		}
	}
}

// Decode fills the struct that into points to from the keys of the agent's own kind,
// strictly. The struct holds the defaults; its json tags are the keys. The error joins
// the mistakes, each at its line.
func (a Agent) Decode(into any) error {
	r := &report{src: a.src}
	own := slices.DeleteFunc(a.keys.entries(), func(e entry) bool { return slices.Contains(agentKeys, e.key) })
	decoder{report: r, where: a.Name}.fields(a.at, "", own, reflect.ValueOf(into).Elem(), agentKeys...)
	return r.err()
}

// Errorf returns a mistake at the agent's key, or at the agent if it does not have the key. A key
// within a list of the agent is written steps[2].if; where that is missing, the nearest around it
// counts.
func (a Agent) Errorf(key, format string, args ...any) error {
	return a.src.errorf(placeOf(key, a.at, a.keys.entries()), a.Name+": "+format, args...)
}

// Digest returns the same for two entries that say the same of an agent, wherever they stand in
// their files.
func (a Agent) Digest() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(a.Name), a.Name, canonical(a.keys.entries())))
}

// Same reports whether b says of its agent what a says, wherever it stands in its file.
func (a Agent) Same(b Agent) bool {
	return a.Name == b.Name && sameEntries(a.keys.entries(), b.keys.entries())
}
