package node

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// SetRanks replaces the ranks of the hosted agents, by principal: all are above 0. An owner
// takes an output over from each of them by a plain move, and an agent from one of a lower
// rank. Nobody takes over from anybody else so. It is for the wiring: no caller comes here.
func (n *Node) SetRanks(ranks map[string]int) {
	n.ranks.Store(&ranks)
	n.views.forget()
}

// rank returns the rank of a principal; 0 for who is no agent of this site, or one without.
func (n *Node) rank(id string) int {
	if ranks := n.ranks.Load(); ranks != nil {
		return (*ranks)[id]
	}
	return 0
}

// outranked returns the holder of an output whom p outranks; "" where there is none.
func (n *Node) outranked(p agents.Principal, v *view, output string) (holder string) {
	all := v.Outputs.Status()
	i := slices.IndexFunc(all, func(s guard.Status) bool { return s.Output == output })
	if i < 0 || all[i].Holder == p.ID {
		return ""
	}
	if theirs := n.rank(all[i].Holder); theirs > 0 && (n.owns(p) || n.rank(p.ID) > theirs) {
		return all[i].Holder
	}
	return ""
}

// moveAbove moves an output, and takes it over first from a holder whom p outranks: without a
// step through safe, which the hardware would see. A refused move leaves it to that holder.
func (n *Node) moveAbove(ctx context.Context, p agents.Principal, v *view, r agents.MoveRequest, length time.Duration, l agents.Limits) (agents.Output, error) {
	out, err := v.move(ctx, p, r, length, l)
	if err == nil || device.AsFault(err).Kind != device.Busy {
		return out, err
	}
	holder := n.outranked(p, v, r.Output)
	if holder == "" || v.Outputs.TakeOver(ctx, p.ID, holder, r.Output) != nil {
		return out, err
	}
	if out, err = v.move(ctx, p, r, length, l); err != nil {
		if back := v.Outputs.TakeOver(ctx, holder, p.ID, r.Output); back != nil && device.AsFault(back).Kind != device.Busy {
			return out, device.Faultf(device.UnknownOutcome, "%w; and it could not be left to its holder: %w", err, back)
		}
	}
	return out, err
}
