// Package agents defines the vocabulary above devices: principals, the operations on a site, and
// the agents hosted on it. It knows no chip, no protocol and no network.
package agents

// Principal is the caller, proven by a carrier and made by node. The zero
// Principal is nobody and is refused everywhere.
type Principal struct {
	ID    string // stable; leases are bound to it: "local", "token:kitchen.1f3a…"
	Owner bool   // may use the owner's method set, which no model ever reaches
}
