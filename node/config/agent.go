package config

import (
	"reflect"
	"slices"
)

// Agent is one entry of the agents section. Which kinds there are, what each of them
// takes and what the words of May mean is known to whoever runs the agents: Decode and
// Errorf report their mistakes at the lines of the file.
type Agent struct {
	Name string
	Kind string
	May  string // the agent's permissions, in the words of grants; "" for none

	src     *source
	at      pos // of the name
	entries []entry
}

// agentPart holds the keys that every agent has.
type agentPart struct {
	Kind string `json:"kind" jsonschema:"what kind of agent this is"`
	May  string `json:"may,omitempty" jsonschema:"what the agent may do, as in a grant: read climate, set house/heater max 5m; nothing when not written"`
}

// agents reads the section of that name. It may be empty.
func (r *report) agents(e entry) (all []Agent) {
	for _, e := range (decoder{r, "agents"}).named(e, "agent", "clock: { kind: … }") {
		d := decoder{r, e.key}
		if e.value.shape != mapping {
			d.fail(e.value.at, "expects keys such as \"kind: …\", not %s", e.value.what())
			continue
		}
		var own agentPart
		d.fields(e.at, "", only(e.value.entries, "kind", "may"), reflect.ValueOf(&own).Elem())
		all = append(all, Agent{e.key, own.Kind, own.May, r.src, e.at, e.value.entries})
	}
	return all
}

// Decode fills the struct that into points to from the keys of the agent's own kind,
// strictly. The struct holds the defaults; its json tags are the keys. The error joins
// the mistakes, each at its line.
func (a Agent) Decode(into any) error {
	r := &report{src: a.src}
	own := slices.DeleteFunc(slices.Clone(a.entries), func(e entry) bool { return e.key == "kind" || e.key == "may" })
	decoder{r, a.Name}.fields(a.at, "", own, reflect.ValueOf(into).Elem(), "kind", "may")
	return r.err()
}

// Errorf returns a mistake at the agent's key, or at the agent if it does not have the key.
func (a Agent) Errorf(key, format string, args ...any) error {
	at := a.at
	if e, ok := find(a.entries, key); ok {
		at = e.value.at
	}
	return a.src.errorf(at, a.Name+": "+format, args...)
}

// Same reports whether b says of its agent what a says, wherever it stands in its file.
func (a Agent) Same(b Agent) bool { return a.Name == b.Name && sameEntries(a.entries, b.entries) }
