package node

import (
	"context"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Ask asks a hosted agent for a task. It checks the permission of p, waits for an owner's approval
// if the permission demands it, charges the permission, and calls begin once. args are the
// arguments; check validates them, for callers that may ask that agent.
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

// AskElsewhere is Ask from a hosted agent to an agent of another site, SITE/AGENT. The agent's own
// permission and the common one of all agents on that site have to allow it, and are charged. ask
// is called once, with the terms for the other site. again repeats a request with an unknown
// outcome: it charges nothing, and needs no owner.
func (n *Node) AskElsewhere(p agents.Principal, agent string, args any, t agents.Terms, again bool, ask func(agents.Terms) (any, error)) error {
	if err := known(p); err != nil {
		return err
	}
	c := call{who: p, ask: agents.Ask{Op: agents.OpAsk, Points: named(agent)}, terms: t, args: func() any { return args }}
	asked := Asked{Who: p.ID, Tool: c.ask.Name()}
	site, _, there := strings.Cut(agent, "/")
	o := n.sitesOf(p)
	if o == nil || !there {
		return n.refuse(asked, device.Faultf(device.Denied, "%.60q may not be asked by you", agent))
	}
	if again {
		return n.askAgain(&c, asked, o.Away(site), ask)
	}
	a, err := n.admitElsewhere(&c)
	if err != nil {
		return err
	}
	defer a.place.Leave()
	if err := o.Away(site); err != nil { // before anything is charged
		return err
	}
	if err := n.permitElsewhere(&c, a.asked); err != nil {
		return err
	}
	v, err := ask(c.termsElsewhere())
	n.journal.Add(a.asked, outcome(v, err))
	return err
}

// askAgain asks an agent of another site once more. Only the outcome is journalled, and not each
// try.
func (n *Node) askAgain(c *call, asked Asked, away error, ask func(agents.Terms) (any, error)) error {
	if !n.seesElsewhere(c.who, agents.OpAsk, c.ask.Points[0], device.Value{}) {
		return n.refuse(asked, errRevoked)
	}
	if away != nil {
		return away
	}
	v, err := ask(c.terms)
	if err != nil {
		return err
	}
	asked.Via = n.via(c.who, c.terms)
	if asked.Args, err = c.encode(); err != nil {
		return err
	}
	n.journal.Add(asked, outcome(v, nil))
	return nil
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

// OnRecheck makes f be called whenever permissions were added or have ended. f does not block. It is
// for the wiring, before the first caller.
func (n *Node) OnRecheck(f func()) { n.recheck = f }
