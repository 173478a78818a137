package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Ask asks a hosted agent for a task: it decides whether p may, has an owner approve that where
// the permission demands it, charges the permission, and calls begin once. args is what is
// asked, and check says what is wrong with it, to those who may ask that agent.
func (n *Node) Ask(p agents.Principal, agent string, args any, t agents.Terms, check func() error, begin func() (any, error)) error {
	c := call{who: p, ask: agents.Ask{Op: agents.OpAsk, Points: named(agent)}, terms: t, args: func() any { return args }}
	a, err := n.admit(&c, func(*view) error { return check() })
	if err != nil {
		return err
	}
	defer a.place.Leave()
	if _, err := n.permit(&c, a.asked); err != nil {
		return err
	}
	v, err := begin()
	n.journal.Add(a.asked, outcome(v, err))
	return err
}

// MayAsk returns why p may not ask a hosted agent. It looks at no rate, and charges nothing.
func (n *Node) MayAsk(p agents.Principal, agent string) error {
	if err := known(p); err != nil {
		return err
	}
	if n.free(p) || n.access.CanSee(p, agents.Ask{Op: agents.OpAsk, Points: named(agent), Effect: agents.Reads}) {
		return nil
	}
	return device.Faultf(device.Denied, "you may not ask %.60q", agent)
}

// Owner returns why p is not an owner now.
func (n *Node) Owner(p agents.Principal) error {
	if err := known(p); err != nil {
		return err
	}
	if !n.owns(p) {
		return device.Faultf(device.Denied, "only an owner may do this")
	}
	return nil
}

// Decided blocks until an owner has answered a request of p, or it is over. A request whose caller
// goes before is withdrawn: an owner is not asked for what nobody waits for, and it keeps no place.
func (n *Node) Decided(ctx context.Context, p agents.Principal, handle string) error {
	if err := known(p); err != nil {
		return err
	}
	n.requests.mu.Lock()
	r := n.requests.all[handle]
	if r == nil || r.asked.Who != p.ID || r.answer != unanswered {
		n.requests.mu.Unlock()
		return nil
	}
	answered, over := r.answered, time.NewTimer(time.Until(r.until))
	n.requests.mu.Unlock()
	defer over.Stop()
	select {
	case <-answered:
		return nil
	case <-over.C:
		return nil
	case <-ctx.Done():
		n.requests.mu.Lock()
		if n.requests.all[handle] == r && r.answer == unanswered {
			n.requests.drop(handle)
		}
		n.requests.mu.Unlock()
		n.hub.Announce(agents.Change{Approvals: true})
		return context.Cause(ctx)
	}
}

// OnRecheck has f called whenever permissions came or went. f does not block. It is for the
// wiring, before the first caller.
func (n *Node) OnRecheck(f func()) { n.recheck = f }
