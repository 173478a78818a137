package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Ask decides whether p may ask a hosted agent for a task: by its permission, which is charged, and after
// an owner's approval if the permission demands it. args are the arguments, and wrong is why they make
// no sense. end is called with what came of it.
func (n *Node) Ask(
	p agents.Principal, agent string, args any, t agents.Terms, wrong error,
) (end func(result any, err error), err error) {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpAsk, Points: named(agent)}, Terms: t, Args: args}
	n.enter(&c)
	if err := n.begin(&c, wrong); err != nil {
		return nil, err
	}
	return func(result any, err error) {
		n.journal.Add(c.asked, outcome(result, err))
		c.End()
	}, nil
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
// leaves before is withdrawn: an owner is not asked about a call that nobody waits for, and it
// keeps no slot.
func (n *Node) Decided(ctx context.Context, p agents.Principal, handle string) error {
	if err := known(p); err != nil {
		return err
	}
	n.requests.mu.Lock()
	r := n.requests.all[handle]
	if r == nil || r.wish != nil || r.asked.Who != p.ID || r.answer != unanswered {
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
