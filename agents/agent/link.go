package agent

import "time"

// Elsewhere is an Agent that stands for another site, which other agents of this site ask by the
// agent's name: its points are called NAME/device/point. Its may: is what all of them together may
// ask there, in the words of that site.
type Elsewhere interface {
	Agent
	// Elsewhere returns the other site's key and where it may be reached.
	Elsewhere() (peer string, addresses []string)
}

// Link is what one agent of this site may ask of another site.
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
