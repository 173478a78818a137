package agents

import "context"

// Hosted is an agent that the site's owner configured. The exported fields of its struct,
// with json tags, are the YAML keys of its kind; `jsonschema:"…"` tags describe them.
type Hosted interface {
	// Run works until ctx ends. It asks the site as self, a principal KIND:NAME with the
	// permissions that its owner gave it: to run inside the site is no privilege. When it
	// returns an error it is run again after a back-off; after nil it has ended.
	Run(ctx context.Context, self Principal, site Site) error
}

// Kind is one entry of the list of kinds of agents.
type Kind struct {
	Name string        // as in the YAML; [a-z]{1,24}
	Doc  string        // one line for people
	New  func() Hosted // returns a pointer to a struct that holds the defaults
}
