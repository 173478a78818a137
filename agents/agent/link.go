package agent

import "time"

// Elsewhere is an Agent that stands for another site. Other agents of this site reach that site by
// the agent's name: its points are called NAME/device/point. The permission of Elsewhere (may:)
// bounds the requests of all these agents together, in the names of that site.
type Elsewhere interface {
	Agent
	// Elsewhere returns the other site's key and where it may be reached.
	Elsewhere() (peer string, addresses []string)
}

// Link describes another site to one agent of this site, and the agent's permission there.
type Link struct {
	Site      string // its name here
	Peer      string // its key
	Addresses []string
	Agent     string // the principal of the agent that asks
	// The permissions there of all agents of this site together, and of this agent, both in the
	// words of that site.
	Most, May string
}

// Connected is another site that agents may be linked to by its grant.
type Connected struct {
	Name  string    `json:"name"` // of the other site, as its owner calls it
	DID   string    `json:"did"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
}
