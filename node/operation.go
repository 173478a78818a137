package node

import (
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// call is one operation that a principal asks for.
type call struct {
	who     agents.Principal
	ask     agents.Ask
	terms   agents.Terms
	args    func() any    // the arguments of the tool that renders it
	confirm bool          // the output's owner wants to be asked first
	renewal bool          // of what the caller holds, if its permission is still one to renew
	holds   time.Duration // how long a move would hold its output now
	lent    bool          // the permission of the asker for whom it is made was charged
}

// none are the arguments of a tool that has none.
func none() any { return struct{}{} }

// named leaves out a point that is left out.
func named(point string) []string {
	if point == "" {
		return nil
	}
	return []string{point}
}

// admitted is a call that its caller may make, as far as is known before it is charged.
type admitted struct {
	view   *view
	asked  Asked
	limits agents.Limits
	place  Place
}

// admit begins every operation: the caller is known, the request makes sense (check), the
// caller may ask for that, and has a place for it. Where it succeeds, the place is left
// afterwards.
func (n *Node) admit(c *call, check func(*view) error) (a admitted, err error) {
	if err := known(c.who); err != nil {
		return a, err
	}
	if err := n.checkVia(c.terms.Via); err != nil {
		return a, n.refuse(Asked{Who: c.who.ID, Tool: c.ask.Name()}, err)
	}
	a.view, _ = n.seenBy(c.who)
	wrong := check(a.view)
	a.asked = Asked{Who: c.who.ID, Tool: c.ask.Name()}
	if c.renewal {
		a.limits, err = n.mayRenew(c.who, c.ask)
		c.renewal = err == nil && (!c.confirm && !a.limits.Confirm || n.owns(c.who))
	}
	if !c.renewal {
		a.limits, err = n.mayBoth(c)
	}
	switch {
	case wrong != nil && (err == nil || len(c.ask.Points) == 0): // it names only what it may see
		if c.ask.Effect == agents.Reads {
			return a, wrong
		}
		return a, n.refuse(a.asked, wrong)
	case err != nil:
		return a, n.refuse(a.asked, err)
	}
	if a.place, err = n.Hold(c.who, quotaOf(c.ask)); err != nil {
		return a, n.refuse(a.asked, err)
	}
	if c.ask.Effect != agents.Reads { // readings are not written down
		a.asked.Via = n.via(c.who, c.terms)
		if a.asked.Args, err = c.encode(); err != nil {
			a.place.Leave()
			return a, n.refuse(a.asked, err)
		}
	}
	return a, nil
}

// encode writes the arguments as JSON, the same for equal arguments.
func (c *call) encode() ([]byte, error) { return json.Marshal(c.args(), json.Deterministic(true)) }

// operate performs an operation that moves nothing.
func operate[T any](n *Node, c *call, check func(*view) error, do func(*view) (T, error)) (res T, err error) {
	a, err := n.admit(c, check)
	if err != nil {
		return res, err
	}
	defer a.place.Leave()
	if _, err := n.permit(c, a.asked); err != nil {
		return res, err
	}
	res, err = do(a.view)
	return res, a.view.redact(c.who, err)
}

// permit charges the permissions that decide about a call, after an owner confirmed the call if
// one of them or the output demands it. An owner's own call counts as confirmed. An earlier
// check of the permissions does not count: another call may have used up a rate meanwhile, so that
// a stricter permission decides.
func (n *Node) permit(c *call, asked Asked) (limits agents.Limits, err error) {
	confirmed := n.owns(c.who)
	for demanded := c.confirm || c.terms.Confirm; ; demanded = true {
		if demanded && !confirmed {
			if err := n.approved(c, asked); err != nil {
				return limits, err
			}
			confirmed = true
		}
		if limits, err = n.takeBoth(c, confirmed); err != nil {
			return limits, n.refuse(asked, err)
		}
		if confirmed || !limits.Confirm {
			return limits, nil
		}
	}
}

// approved takes an owner's yes to a call, or returns an *agents.ApprovalNeeded.
func (n *Node) approved(c *call, asked Asked) (err error) {
	if c.terms.NoApproval {
		return n.refuse(asked, errConfirm)
	}
	if asked.Args == nil {
		asked.Via = n.via(c.who, c.terms)
		asked.Args, err = c.encode()
	}
	if err == nil {
		err = n.requests.ask(asked, c.holds, c.terms.Approval, func() (Place, error) { return n.Hold(c.who, approvals) })
	}
	if _, waits := err.(*agents.ApprovalNeeded); err != nil && !waits {
		return n.refuse(asked, err)
	}
	n.hub.Announce(agents.Change{Approvals: true})
	return err
}

// refuse counts a refusal, and returns it.
func (n *Node) refuse(a Asked, err error) error {
	n.journal.Deny(a.Who, a.Tool, device.AsFault(err).Kind)
	return err
}
