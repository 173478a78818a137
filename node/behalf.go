package node

import (
	"context"
	"log/slog"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// recallTimeout bounds one try of the return of an output of another site whose asker's permission has ended.
const recallTimeout = 10 * time.Second

// maxRecallWait is the longest wait between tries of that.
const maxRecallWait = time.Minute

// maxUnknown is for how long an output of another site may be away from safe by a move that was not
// answered.
const maxUnknown = 24 * time.Hour

// bounding returns the asker whose permission bounds a call beside that of the hosted agent that
// makes it. Readings are the agent's own, and so are the calls of an agent whose owner fixed what it
// does: the permission to ask it is the permission for that.
func (n *Node) bounding(c *Call) (asker agents.Principal, ok bool) {
	asker = c.Terms.Behalf.Asker
	acts := c.Ask.Effect != agents.Reads || c.Ask.Op == agents.OpCapture
	return asker, asker.ID != "" && acts && !n.hostedAs(c.who.ID).Fixed && !n.free(asker)
}

// mayBoth decides as may does, by the permissions of the caller and of its asker.
func (n *Node) mayBoth(c *Call) (agents.Limits, error) {
	limits, err := n.may(c.who, c.Ask)
	asker, ok := n.bounding(c)
	if err != nil || !ok || c.Ask.Effect == agents.Returns { // see permitReturn
		return limits, err
	}
	theirs, err := n.may(asker, c.Ask)
	return c.narrow(limits, theirs, err)
}

// takeBoth charges as take does, the permissions of the caller and of its asker. An asker that may
// not make the call itself is charged nothing: an owner has approved it.
func (n *Node) takeBoth(c *Call, confirmed bool) (agents.Limits, error) {
	asker, ok := n.bounding(c)
	if !ok {
		return n.take(c.who, c.Ask, confirmed)
	}
	if limits, err := n.mayBoth(c); err != nil || limits.Confirm && !confirmed {
		return limits, err // before anything is charged
	}
	limits, err := n.take(c.who, c.Ask, confirmed)
	if err != nil || limits.Confirm && !confirmed {
		return limits, err
	}
	theirs, err := n.take(asker, c.Ask, confirmed)
	c.lent = err == nil
	return c.narrow(limits, theirs, err)
}

// narrow narrows the limits of the caller by those of its asker, or by the refusal of that.
func (c *Call) narrow(limits, theirs agents.Limits, refused error) (agents.Limits, error) {
	if refused == nil && c.Terms.Behalf.Refuse && theirs.Confirm {
		refused = errConfirm
	}
	switch {
	case refused == nil:
		limits.Confirm = limits.Confirm || theirs.Confirm
		if theirs.Lease > 0 && (limits.Lease == 0 || theirs.Lease < limits.Lease) {
			limits.Lease = theirs.Lease
		}
	case c.Terms.Behalf.Refuse || device.AsFault(refused).Kind != device.Denied:
		return limits, refused
	default:
		limits.Confirm = true
	}
	return limits, nil
}

// permitReturn decides about a return to safe, or a stop, that a hosted agent makes for somebody. It
// is charged nothing. What the agent moved for the same asker it may always return, and the agent's
// own program what it holds.
func (n *Node) permitReturn(c *Call) error {
	if c.Terms.Behalf.Asker.ID == "" || c.Ask.Op == agents.OpMove && (c.Terms.Held || n.movedFor(c)) {
		return nil
	}
	confirm := c.Terms.Confirm
	if asker, ok := n.bounding(c); ok {
		if _, err := n.may(asker, c.Ask); err != nil {
			if c.Terms.Behalf.Refuse {
				return n.refuse(c.asked, err)
			}
			confirm = true
		}
	}
	if confirm {
		return n.approved(c)
	}
	return nil
}

// behalf is for whom a hosted agent moved an output.
type behalf struct {
	agent, asker agents.Principal
	lent         bool         // by the asker's own permission, too
	earlier      device.Value // of a move of an earlier run, of which no grant is known; none for others
	until        time.Time
	returning    bool  // the asker's permission has ended
	back         Mover // of an output of another site, which it returns; nil for one of this site
}

// noteBehalf records for whom an output was moved, or may have been if that was not answered.
func (n *Node) noteBehalf(c *Call, out agents.Output, err error) {
	asker, output := c.Terms.Behalf.Asker, c.Ask.Points[0]
	switch {
	case err != nil && device.AsFault(err).Kind != device.UnknownOutcome:
		return
	case err != nil:
		out.Left = maxUnknown.Seconds()
	}
	until := time.Now().Add(time.Duration(min(out.Left, 1e9) * float64(time.Second)))
	have, ok := n.behalves.Load(output)
	switch {
	case c.renewal && ok: // it is held for whom it was moved
		if b := have.(behalf); b.agent.ID == c.who.ID {
			b.until = until
			n.behalves.CompareAndSwap(output, have, b)
		}
	case c.renewal:
	case asker.ID != "":
		n.behalves.Store(output, behalf{agent: c.who, asker: asker, lent: c.lent, until: until, back: c.Back})
	case err == nil:
		n.behalves.Delete(output)
	}
}

// MovedBefore records that an agent moved an output of another site for an asker in an earlier run, and
// may hold it for so long. approved says that an owner approved it. If the asker's permission has ended,
// or is not known, because its grant is not stored here, the output returns to safe by back.
func (n *Node) MovedBefore(
	agent, asker agents.Principal, output string, v device.Value, approved bool, left time.Duration, back Mover,
) error {
	if err := known(asker); err != nil {
		return err
	}
	lent := !approved && !n.free(asker) && !n.hostedAs(agent.ID).Fixed
	b := behalf{agent: agent, asker: asker, earlier: v, lent: lent, until: time.Now().Add(left), back: back}
	if _, later := n.behalves.LoadOrStore(output, b); !later {
		n.recall()
	}
	return nil
}

// movedFor reports whether an output is away from safe because the caller moved it for its asker.
func (n *Node) movedFor(c *Call) bool {
	output := c.Ask.Points[0]
	b, ok := n.behalfOf(c.who.ID, output)
	return ok && b.asker.ID == c.Terms.Behalf.Asker.ID && n.isAway(b, output)
}

// isAway reports whether an agent holds an output that it moved for somebody.
func (n *Node) isAway(b behalf, output string) bool {
	if b.back != nil {
		return time.Now().Before(b.until)
	}
	s, ok := n.site.Load().Outputs.StatusOf(output)
	return ok && s.Holder == b.agent.ID
}

// behalfOf returns for whom a principal moved an output, if it did so for somebody.
func (n *Node) behalfOf(who, output string) (behalf, bool) {
	v, _ := n.behalves.Load(output)
	b, ok := v.(behalf)
	return b, ok && b.agent.ID == who
}

// mayKeep reports whether a principal may keep an output away from safe: by its permissions, and,
// where it moved the output for somebody, also by those of its asker.
func (n *Node) mayKeep(who, output string) bool {
	b, ok := n.behalfOf(who, output)
	return n.access.MayHold(who, output) && (!ok || n.lasts(b, output))
}

// lasts reports whether the permissions of an asker last by which an output was moved for it.
func (n *Node) lasts(b behalf, output string) bool {
	_, agent := b.agent.Agent()
	switch {
	case n.MayAsk(b.asker, agent) != nil:
		return false
	case !b.lent:
		return true
	case b.earlier.IsZero():
		return n.access.MayHold(b.asker.ID, output)
	}
	_, err := n.may(b.asker, agents.Ask{Op: agents.OpMove, Points: named(output), Value: b.earlier})
	return err == nil || device.AsFault(err).Kind == device.Busy // a rate that is used up
}

// recall returns the outputs to safe that were moved for askers whose permission has ended. It waits
// for none of them.
func (n *Node) recall() {
	n.behalves.Range(func(key, value any) bool {
		output, b := key.(string), value.(behalf)
		if b.back != nil && !b.returning && !n.isAway(b, output) {
			n.behalves.CompareAndDelete(key, value)
			return true
		}
		if b.returning || !n.isAway(b, output) || n.lasts(b, output) {
			return true
		}
		b.returning = true
		if n.behalves.CompareAndSwap(key, value, b) {
			go n.bringBack(output)
		}
		return true
	})
}

// bringBack returns an output to safe that an agent holds, and tries again while it holds it and has
// not moved it anew.
func (n *Node) bringBack(output string) {
	for wait := time.Second; ; wait = min(2*wait, maxRecallWait) {
		have, _ := n.behalves.Load(output)
		b, ok := have.(behalf)
		if !ok || !b.returning {
			return
		} else if !n.isAway(b, output) {
			b.returning = false // the guard's state may be late
			n.behalves.CompareAndSwap(output, have, b)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), recallTimeout)
		err := n.takeBack(ctx, b, output)
		cancel()
		if err == nil || device.AsFault(err).Kind == device.Expired {
			if err == nil {
				n.NoteRevoked(output)
			}
			n.behalves.CompareAndDelete(output, have)
			return
		}
		slog.Warn("output not returned after the end of its asker's permission; it is tried again",
			"output", output, "err", err)
		time.Sleep(wait)
	}
}

// takeBack returns an output to safe that an agent holds.
func (n *Node) takeBack(ctx context.Context, b behalf, output string) (err error) {
	if b.back != nil {
		_, err = b.back.Move(ctx, b.agent, agents.MoveRequest{Output: output, Terms: agents.Terms{Held: true}})
		return err
	}
	v := n.site.Load().whole
	_, err = v.Outputs.Renew(ctx, b.agent.ID, output, v.output(guard.Status{Output: output}).Safe, 0)
	return err
}
