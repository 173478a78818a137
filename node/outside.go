package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// HeldBack is why a watcher is told no value of a point.
const HeldBack = "your rate is used up; this follows later"

// Outside is what a call that is made on other sites has beside its operation. The permissions here
// decide about it, and those of the other sites.
type Outside struct {
	// With are further principals whose permissions here it needs, each for a part of the call.
	With  []Part
	Wrong error // why the request makes no sense
	Away  error // why it cannot be made now; nothing is charged then
	Again bool  // it was begun before, and not answered: it is charged nothing
	Back  Mover // returns what it moves to safe, when the permission of its asker has ended
	// lease is the longest that the permissions let it hold an output; 0 leaves that to the other site.
	lease time.Duration

	node *Node // nil for a call on the devices of this site
}

// Part is a part of a call, for which a principal has a permission.
type Part struct {
	Who agents.Principal
	Ask agents.Ask
}

// Mover moves outputs of other sites.
type Mover interface {
	Move(context.Context, agents.Principal, agents.MoveRequest) (agents.Output, error)
}

// Begin decides about a call of p that is made on other sites, in the steps of every Call. Where it
// succeeds, the call is made, Done is told the outcome of one that acts, and End follows. earlier is the
// outcome of the same call before, which is not made again.
func (n *Node) Begin(ctx context.Context, p agents.Principal, c *Call) (earlier *Outcome, err error) {
	if err := known(p); err != nil {
		return nil, err
	}
	c.node, c.who, c.came, c.renewal = n, p, time.Now(), c.moves() && c.Terms.Held
	n.enter(c)
	if c.With == nil {
		return nil, n.refuse(c.asked, device.Faultf(device.Denied, "this is on no other site that you may ask"))
	}
	if c.Again {
		return nil, n.beginAgain(c)
	}
	if err := n.admit(c, c.Wrong); err != nil {
		return nil, err
	}
	c.lease = c.limits.Lease
	if earlier, err = n.beginOutside(ctx, c); earlier != nil || err != nil {
		c.End()
	}
	return earlier, err
}

// beginOutside does what follows when a call on other sites has its place.
func (n *Node) beginOutside(ctx context.Context, c *Call) (earlier *Outcome, err error) {
	switch {
	case c.Ask.Op == agents.OpWatch || c.renewal: // values are charged when they are told, and a renewal is not
		return nil, nil
	case c.Ask.Effect == agents.Returns:
		return nil, n.permitReturn(c)
	case c.moves():
		if earlier, err := n.earlier(c); earlier != nil || err != nil {
			return earlier, err
		}
		if c.Away != nil { // rather than an entry for each try
			return nil, n.refuse(c.asked, c.Away)
		}
	case c.Away != nil:
		return nil, c.Away
	}
	if err := n.permit(c); err != nil || !c.moves() {
		return nil, err
	}
	return n.intend(ctx, c)
}

// beginAgain decides whether a call that was begun may be made once more.
func (n *Node) beginAgain(c *Call) error {
	if c.refused != nil {
		return c.refused
	}
	if err := n.Sees(c.who, c.Ask, c.With); err != nil {
		return n.refuse(c.asked, err)
	}
	if c.Away != nil {
		return c.Away
	}
	return n.describe(c)
}

// moves reports whether a call may move an output away from safe.
func (c *Call) moves() bool { return c.Ask.Op == agents.OpMove && c.Ask.Effect != agents.Returns }

// mayWith narrows the limits of a call by those of the further principals whose permissions it needs.
func (n *Node) mayWith(c *Call) error {
	for _, part := range c.With {
		limits, err := n.may(part.Who, part.Ask)
		if err != nil && !(c.renewal && device.AsFault(err).Kind == device.Busy) { // a renewal is not charged
			return err
		}
		c.confirm = c.confirm || limits.Confirm
		if limits.Lease > 0 && (c.limits.Lease == 0 || limits.Lease < c.limits.Lease) {
			c.limits.Lease = limits.Lease
		}
	}
	c.confirm = c.confirm || c.limits.Confirm || c.Terms.Confirm
	if c.renewal && c.confirm {
		return device.Faultf(device.Expired, "an owner confirms each time that %s is held", c.Ask.Points[0])
	}
	return nil
}

// There returns the terms that the other site is told: an approval that was taken here is no word there.
func (c *Call) There() agents.Terms {
	t := c.Terms
	if c.confirm || c.Ask.Effect == agents.Returns {
		t.Approval = ""
	}
	return t
}

// For returns for how long the other site is asked to hold an output, of which asked is what the caller
// asked for. The other site's own length may be longer than the permissions here.
func (c *Call) For(asked *float64) *float64 {
	if asked == nil && c.lease > 0 {
		return new(min(c.lease, guard.DefaultFor).Seconds())
	}
	return asked
}

// settle records the outcome of a call on other sites whose intent is not stored, and for whom it moved
// an output.
func (n *Node) settle(c *Call, v any, err error) {
	if c.moves() {
		out, _ := v.(agents.Output)
		n.noteBehalf(c, out, err)
	}
	switch {
	case c.finish != nil:
		n.recall() // what ended meanwhile
	case !c.Again || err == nil:
		n.journal.Add(c.asked, outcome(v, err))
	}
}

// Sees returns why p, or a further principal, has no permission for an operation, whatever its limits and
// rates.
func (n *Node) Sees(p agents.Principal, ask agents.Ask, with []Part) error {
	if err := known(p); err != nil {
		return err
	}
	if !n.free(p) && !n.access.CanSee(p, ask) {
		return errRevoked
	}
	for _, part := range with {
		if !n.free(part.Who) && !n.access.CanSee(part.Who, part.Ask) {
			return errRevoked
		}
	}
	return nil
}

// Charge charges the permissions for readings that a watcher is told, about which no owner is asked.
func (n *Node) Charge(p agents.Principal, ask agents.Ask, with []Part) error {
	if err := known(p); err != nil {
		return err
	}
	err := n.charge(p, ask)
	for i := 0; err == nil && i < len(with); i++ {
		err = n.charge(with[i].Who, with[i].Ask)
	}
	return err
}

func (n *Node) charge(p agents.Principal, ask agents.Ask) error {
	limits, err := n.take(p, ask, false)
	if err == nil && limits.Confirm {
		err = errConfirm
	}
	return err
}

// Version returns a number that changes when what p sees may have changed by its permissions.
func (n *Node) Version(p agents.Principal) (uint64, error) {
	if err := known(p); err != nil {
		return 0, err
	}
	return n.accessVersion(p), nil
}
