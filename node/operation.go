package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// Call is one operation that a principal asks for. It takes these steps in this order, and ends at the
// first one that refuses it:
//
//   - enter: the caller is known, and the call came through few enough others;
//   - admit: the request makes sense for what the caller sees, its permissions allow it, and it has a place;
//   - permit: an owner has approved it, if one has to, and the permissions are charged;
//   - intend, of a call that is written down before it is made: its intent is durable.
//
// Then it is made, and End follows.
type Call struct {
	Ask   agents.Ask
	Terms agents.Terms
	Args  any // of the tool that renders it
	Outside

	who  agents.Principal
	came time.Time

	refused error         // by enter
	view    *view         // the site as the caller sees it
	confirm bool          // the output's owner wants to be asked first
	renewal bool          // of what the caller holds, if its permission is still one to renew
	holds   time.Duration // how long a move would hold its output now
	lent    bool          // the permission of the asker for whom it is made was charged

	asked  Asked // as the journal has it
	limits agents.Limits
	place  Place
	late   time.Duration // how long after it came it may begin; 0 for ever
	finish func(Outcome) // completes the journal's entry; nil for a call without one
}

// none are the arguments of a tool that has none.
var none any = struct{}{}

// named leaves out a point that is left out.
func named(point string) []string {
	if point == "" {
		return nil
	}
	return []string{point}
}

// MoveOf returns the call of a move.
func MoveOf(r agents.MoveRequest) Call {
	_, args := tools.OfMove(r)
	ask := agents.Ask{Op: agents.OpMove, Points: named(r.Output), Value: r.Value, For: lengthOf(r.For)}
	if r.Value.IsZero() {
		ask.Effect = agents.Returns
	}
	return Call{Ask: ask, Terms: r.Terms, Args: args}
}

// enter returns the site as the caller sees it, which is nothing for one that is refused.
func (n *Node) enter(c *Call) *view {
	c.asked = Asked{Who: c.who.ID, Tool: c.Ask.Name()}
	n.counts.calls[c.Ask.Op].Add(1)
	if c.refused = known(c.who); c.refused == nil {
		if err := n.checkVia(c.Terms.Via, c.With != nil); err != nil {
			c.refused = n.refuse(c.asked, err)
		}
	}
	if c.refused != nil {
		c.view = noSite().whole
	} else {
		c.view, _ = n.seenBy(c.who)
	}
	return c.view
}

// begin is admit and permit. Where it succeeds, End follows.
func (n *Node) begin(c *Call, wrong error) error {
	if err := n.admit(c, wrong); err != nil {
		return err
	}
	if err := n.permit(c); err != nil {
		c.End()
		return err
	}
	return nil
}

// admit decides about a call that has entered, as far as that is known before it is charged. wrong is
// why the request makes no sense, which only a caller learns that may make it, or that names no point.
// Where it succeeds, End follows.
func (n *Node) admit(c *Call, wrong error) (err error) {
	if c.refused != nil {
		return c.refused
	}
	if c.renewal {
		c.limits, err = n.mayRenew(c.who, c.Ask)
		c.renewal = c.With != nil || err == nil && (!c.confirm && !c.limits.Confirm || n.confirmed(c))
	}
	if !c.renewal {
		c.limits, err = n.mayBoth(c)
	}
	if err == nil && c.With != nil {
		err = n.mayWith(c)
	}
	switch {
	case wrong != nil && (err == nil || len(c.Ask.Points) == 0):
		if c.Ask.Effect == agents.Reads {
			return wrong
		}
		return n.refuse(c.asked, wrong)
	case err != nil:
		return n.refuse(c.asked, n.wished(c.who, c.Ask, c.Args, err))
	}
	if c.place, err = n.Hold(c.who, quotaOf(c.Ask)); err != nil {
		return n.refuse(c.asked, err)
	}
	if c.Ask.Effect != agents.Reads { // readings are not written down
		if err := n.describe(c); err != nil {
			c.End()
			return n.refuse(c.asked, err)
		}
	}
	return nil
}

// describe writes down through whom a call came, and its arguments: the same for equal arguments.
func (n *Node) describe(c *Call) (err error) {
	c.asked.Via = n.via(c.who, c.Terms)
	c.asked.Args, err = json.Marshal(c.Args, json.Deterministic(true))
	if err != nil {
		return device.Faultf(device.Invalid, "the arguments cannot be written as JSON: %w", err)
	}
	return nil
}

// permit charges the permissions that decide about a call, after an owner confirmed the call if
// one of them or the output demands it. An earlier check of the permissions does not count: another
// call may have used up a rate meanwhile, so that a stricter permission decides.
func (n *Node) permit(c *Call) (err error) {
	confirmed := n.confirmed(c)
	for demanded := c.confirm || c.Terms.Confirm; ; demanded = true {
		if demanded && !confirmed {
			if err := n.approved(c); err != nil {
				return err
			}
			confirmed = true
		}
		if c.limits, err = n.takeBoth(c, confirmed); err != nil {
			return n.refuse(c.asked, err)
		}
		if confirmed || !c.limits.Confirm {
			break
		}
	}
	for _, part := range c.With { // mayWith has found out whether an owner is to be asked
		if _, err := n.take(part.Who, part.Ask, true); err != nil {
			return n.refuse(c.asked, err)
		}
	}
	return nil
}

// confirmed reports whether a call counts as approved because an owner makes it, and a person confirmed it.
func (n *Node) confirmed(c *Call) bool { return n.owns(c.who) && !c.Terms.Unconfirmed }

// approved takes an owner's yes to a call, or returns an *agents.ApprovalNeeded.
func (n *Node) approved(c *Call) (err error) {
	if c.Terms.NoApproval {
		return n.refuse(c.asked, errConfirm)
	}
	if c.asked.Args == nil {
		err = n.describe(c)
	}
	if err == nil {
		hold := func() (Place, error) { return n.Hold(c.who, approvals) }
		of := *c
		may := func() error { _, err := n.mayBoth(&of); return err }
		var length time.Duration
		length, err = n.requests.ask(c.asked, c.holds, c.Terms.Approval, may, hold)
		if err == nil && length < c.holds {
			c.Ask.For = length
		}
	}
	if _, waits := err.(*agents.ApprovalNeeded); err != nil && !waits {
		return n.refuse(c.asked, err)
	}
	n.hub.Announce(agents.Change{Approvals: true})
	return err
}

// earlier takes over the key of a call, and returns the outcome of a call with the same key before it;
// nil where there was none.
func (n *Node) earlier(c *Call) (*Outcome, error) {
	if err := c.checkTerms(); err != nil {
		return nil, n.refuse(c.asked, err)
	}
	return n.journal.Replay(c.asked)
}

// intend stores the intent of a call durably. Then Done follows with the outcome, unless a call with
// the same key came before, whose outcome it returns, or the call may not begin any more.
func (n *Node) intend(ctx context.Context, c *Call) (earlier *Outcome, err error) {
	finish, earlier, err := n.journal.Begin(c.asked)
	if earlier != nil || err != nil {
		return earlier, err
	}
	c.finish = finish
	if err := c.inTime(ctx); err != nil {
		return nil, c.Done(nil, err)
	}
	return nil, nil
}

// inTime refuses a call that may not begin any more, because it came too long ago or its caller is gone.
func (c *Call) inTime(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return device.Faultf(device.Expired,
			"the caller had gone before this could begin, and nothing was done; call again with another key")
	case c.late > 0 && time.Since(c.came) > c.late:
		return device.Faultf(device.Expired,
			"this could not begin within %v, and nothing was done; call again with another key", c.late)
	}
	return nil
}

// Done records the outcome of a call whose intent is stored, or that is made on other sites, and returns
// err.
func (c *Call) Done(v any, err error) error {
	if c.node != nil {
		c.node.settle(c, v, err)
	}
	if c.finish != nil {
		c.finish(outcome(v, err))
		c.finish = nil
	}
	return err
}

// End gives back the place of a call. If a panic has ended the call, its outcome is not known.
func (c *Call) End() {
	if c.finish != nil { // a repeated call does not wait for it
		c.finish(Outcome{
			Fault: string(device.UnknownOutcome),
			Says:  "a defect of the program ended this call; whether it was done is not known",
		})
	}
	c.place.Leave()
}

// refuse counts a refusal, and returns it.
func (n *Node) refuse(a Asked, err error) error {
	kind := device.AsFault(err).Kind
	n.counts.refuse(kind)
	n.journal.Deny(a.Who, a.Tool, kind)
	return err
}

// Replayed returns an earlier outcome as the answer to a later call.
func Replayed[T any](o *Outcome, err error) (out T, _ error) {
	if err != nil {
		return out, err
	}
	if o.Fault != "" {
		return out, &device.Fault{Kind: device.FaultKind(o.Fault), Msg: o.Says}
	}
	if err := json.Unmarshal(o.Value, &out); err != nil {
		return out, device.Faultf(device.Internal, "the journal's record of this call cannot be read: %w", err)
	}
	return out, nil
}
