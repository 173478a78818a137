package node

import (
	"context"
	"strings"
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
	c := call{who: p, ask: agents.Ask{Op: agents.OpAsk, Points: named(agent)}, terms: t, args: args}
	n.enter(&c)
	if err := n.begin(&c, wrong); err != nil {
		return nil, err
	}
	return func(result any, err error) {
		n.journal.Add(c.asked, outcome(result, err))
		c.end()
	}, nil
}

// AskElsewhere is Ask from a hosted agent to an agent of another site, SITE/AGENT. The agent's own
// permission and the common one of all agents on that site have to allow it, and are charged. there
// are the terms for the other site. again repeats a request with an unknown outcome: it is charged
// nothing, and needs no owner; of such tries the journal has the one that is answered.
func (n *Node) AskElsewhere(
	p agents.Principal, agent string, args any, t agents.Terms, again bool,
) (there agents.Terms, end func(result any, err error), err error) {
	if err := known(p); err != nil {
		return t, nil, err
	}
	c := call{who: p, ask: agents.Ask{Op: agents.OpAsk, Points: named(agent)}, terms: t, args: args, far: true}
	site, _, ok := strings.Cut(agent, "/")
	o := n.sitesOf(p)
	if o == nil || !ok {
		err := device.Faultf(device.Denied, "%.60q may not be asked by you", agent)
		return t, nil, n.refuse(Asked{Who: p.ID, Tool: c.ask.Name()}, err)
	}
	n.enter(&c)
	if again {
		return n.askAgain(&c, o.Away(site))
	}
	if err := n.admit(&c, nil); err != nil {
		return t, nil, err
	}
	if err = o.Away(site); err == nil { // before anything is charged
		err = n.permit(&c)
	}
	if err != nil {
		c.end()
		return t, nil, err
	}
	return c.termsElsewhere(), func(result any, err error) {
		n.journal.Add(c.asked, outcome(result, err))
		c.end()
	}, nil
}

// askAgain decides whether an agent of another site may be asked once more.
func (n *Node) askAgain(c *call, away error) (there agents.Terms, end func(any, error), err error) {
	if !n.seesElsewhere(c.who, agents.OpAsk, c.ask.Points[0], device.Value{}) {
		return c.terms, nil, n.refuse(c.asked, errRevoked)
	}
	if away != nil {
		return c.terms, nil, away
	}
	if err := n.describe(c); err != nil {
		return c.terms, nil, err
	}
	return c.terms, func(result any, err error) {
		if err == nil {
			n.journal.Add(c.asked, outcome(result, nil))
		}
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
