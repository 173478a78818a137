package node

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// Hosted describes a hosted agent to the node.
type Hosted struct {
	// Rank is above 0 for an agent whose outputs others may take over by a plain move. An owner
	// takes over from any, an agent from one of a lower rank. No other principal takes over so.
	Rank  int
	Reads []string // the points that its definition names
	// Fixed says that its owner wrote all that it does: the permission to ask it for a task is the
	// permission for that. What another agent does for an asker is bounded by that asker's permission.
	Fixed bool
}

// ReplaceAgents replaces the descriptions of the hosted agents, by principal. It is for the wiring: no
// caller comes here.
func (n *Node) ReplaceAgents(all map[string]Hosted) {
	n.agents.Store(&all)
	n.views.forget()
}

// hostedAs returns the description of a hosted agent; the zero one for any other principal.
func (n *Node) hostedAs(id string) (h Hosted) {
	if all := n.agents.Load(); all != nil {
		h = (*all)[id]
	}
	return h
}

// rank returns the rank of a hosted agent; 0 for any other principal.
func (n *Node) rank(id string) int { return n.hostedAs(id).Rank }

// releaser describes the caller that returned an output to safe; its rank is 0 unless it is an agent.
type releaser struct {
	owner bool
	rank  int
}

// others reports whether an output's holder, or the last caller to release it, is neither an owner
// nor an agent of the site. An agent that released it counts as one if p does not outrank it.
func (n *Node) others(p agents.Principal, s guard.Status) bool {
	if s.Holder != "" {
		return n.rank(s.Holder) == 0 && s.Holder != LocalOwner.ID && n.access != nil && !n.access.Owns(s.Holder)
	}
	v, _ := n.released.Load(s.Output)
	by, ok := v.(releaser)
	return ok && !by.owner && (by.rank == 0 || by.rank < n.rank(p.ID))
}

// readers returns the hosted agents whose definition names a point, sorted.
func (n *Node) readers(address string) (principals []string) {
	all := n.agents.Load()
	if all == nil {
		return nil
	}
	for principal, agent := range *all {
		if slices.Contains(agent.Reads, address) {
			principals = append(principals, principal)
		}
	}
	slices.Sort(principals)
	return principals
}

// outranked returns the holder of an output if p outranks it; "" otherwise.
func (n *Node) outranked(p agents.Principal, v *view, output string) (holder string) {
	s, ok := v.Outputs.StatusOf(output)
	if !ok || s.Holder == p.ID {
		return ""
	}
	if theirs := n.rank(s.Holder); theirs > 0 && (n.owns(p) || n.rank(p.ID) > theirs) {
		return s.Holder
	}
	return ""
}

// moveAbove moves an output, also if its caller outranks its holder. It does so without a step through
// safe, which the hardware would see. A refused move leaves it to that holder.
func (n *Node) moveAbove(ctx context.Context, c *Call, r agents.MoveRequest) (agents.Output, error) {
	out, err := c.view.move(ctx, c, r)
	if err == nil || device.AsFault(err).Kind != device.Busy {
		return out, err
	}
	holder := n.outranked(c.who, c.view, r.Output)
	if holder == "" {
		return out, err
	}
	length := c.view.within(r.Output, c.Ask.For, c.limits)
	s, err := c.view.Outputs.MoveOver(ctx, c.who.ID, holder, r.Output, r.Value, length)
	return c.view.output(s), c.view.redact(c.who, err)
}
