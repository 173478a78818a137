package node

import (
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
)

// viaTask begins the name of a task among those that a call came through.
const viaTask = "task/"

// CheckVia refuses a call that came through this site before, or through too many sites; method
// names it for the journal.
func (n *Node) CheckVia(p agents.Principal, method string, via []string) error {
	if err := known(p); err != nil {
		return err
	}
	if err := n.checkVia(via, false); err != nil {
		return n.refuse(Asked{Who: p.ID, Tool: method}, err)
	}
	return nil
}

// checkVia refuses a call by the chain that it came through; further says that it goes on to another site.
func (n *Node) checkVia(via []string, further bool) error {
	switch {
	case len(via) > agents.MaxVia:
		return device.Faultf(device.Denied, "this call came through %d sites and agents, and may through %d: "+
			"look for a ring of sites that ask each other", len(via), agents.MaxVia)
	case further && len(via) == agents.MaxVia:
		return device.Faultf(device.Denied, "this call came through %d sites and agents, and goes through no more", len(via))
	case n.self != nil && slices.ContainsFunc(via, n.self):
		return device.Faultf(device.Denied, "this call came through this site before: sites ask each other in a ring here")
	}
	return nil
}

// via returns the chain of a call for the journal: callers write it, and people read it. The asker
// and the task of a hosted agent come after the sites. A name
// that another site gave its agent comes after that agent's key, and for the caller last.
func (n *Node) via(p agents.Principal, t agents.Terms) (clean []string) {
	all := slices.Clone(t.Via)
	if asker := t.Behalf.Asker.ID; asker != "" {
		all = append(all, asker)
		if n.access != nil {
			if agent := n.access.AgentName(asker); agent != "" {
				all = append(all, agent)
			}
		}
		all = append(all, viaTask+t.Behalf.Task)
	}
	for _, name := range all {
		odd := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
		if odd || len(name) > maxViaName || name == "" {
			name = "?"
		}
		clean = append(clean, name)
	}
	if !n.free(p) {
		if name := n.access.AgentName(p.ID); name != "" {
			clean = append(clean, name)
		}
	}
	return clean
}
