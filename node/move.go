package node

import (
	"context"
	"errors"
	"math"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"

	"github.com/go-json-experiment/json"
)

const (
	maxWithin  = 24 * time.Hour
	maxViaName = 64
)

// Move moves an output, or returns it to safe. A return to safe waits for nothing. Any other move
// passes these checks in order: repetition of an earlier call, the guard's dry run, an owner's
// approval, permission, journal entry.
//
// Repetition is checked before the guard, whose reason to refuse the second call may be the effect
// of the first. The second call gets the answer of the first instead.
func (n *Node) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	c := MoveOf(r)
	c.who, c.came = p, time.Now()
	wrong := n.enter(&c).planMove(&c, r)
	if err := n.admit(&c, wrong); err != nil {
		return out, err
	}
	defer c.End()
	if c.Ask.Effect == agents.Returns {
		if err := n.permitReturn(&c); err != nil {
			return out, err
		}
		return n.release(ctx, &c, r)
	}
	if earlier, err := n.earlier(&c); earlier != nil || err != nil {
		return Replayed[agents.Output](earlier, err)
	}
	if c.renewal {
		if err := c.inTime(ctx); err != nil {
			return out, n.refuse(c.asked, err)
		}
		if out, err := c.view.renew(ctx, &c, r); err == nil || device.AsFault(err).Kind != device.Expired {
			n.journal.Add(c.asked, outcome(out, err))
			return out, err
		} // the lease has ended since, so that this would be a move
	}
	if r.Held && !c.view.holdsOther(p, r) {
		return out, n.refuse(c.asked, device.Faultf(device.Expired, "%s is not held by the caller any more", r.Output))
	}
	if err := c.view.try(ctx, &c, r); err != nil &&
		(device.AsFault(err).Kind != device.Busy || n.outranked(p, c.view, r.Output) == "") {
		return out, n.refuse(c.asked, err)
	}
	c.holds = c.view.expected(&c, r.Output)
	if err := n.permit(&c); err != nil {
		return out, err
	}
	if earlier, err := n.intend(ctx, &c); earlier != nil || err != nil {
		return Replayed[agents.Output](earlier, err)
	}
	// From here on the caller may go: a repeated call is answered with the outcome.
	ctx = context.WithoutCancel(ctx)
	out, err = n.moveAbove(ctx, &c, r)
	n.noteBehalf(&c, out, err)
	switch {
	case err == nil && !n.mayHold(p, c.Ask.Points): // revoked meanwhile
		_, undone := c.view.Outputs.Release(ctx, r.Output)
		out, err = agents.Output{}, errors.Join(errRevoked, undone)
	case err != nil:
		n.recall() // it may have moved
	}
	return out, c.Done(out, err)
}

// Try returns why an output of this site cannot be moved now. Nothing moves, and no rate is charged.
func (n *Node) Try(ctx context.Context, p agents.Principal, r agents.MoveRequest) error {
	c := MoveOf(r)
	c.who, c.came = p, time.Now()
	wrong := n.enter(&c).planMove(&c, r)
	if err := n.admit(&c, wrong); err != nil {
		return err
	}
	defer c.End()
	if c.Ask.Effect == agents.Returns {
		return nil
	}
	return c.view.try(ctx, &c, r)
}

// planMove checks a move, and finds out whether it returns to safe and whether an owner
// wants to be asked first.
func (v *view) planMove(c *Call, r agents.MoveRequest) error {
	offered := v.offer().Release
	switch r.Value.Type() {
	case device.TypeNone: // a release
	case device.TypeBool:
		offered = v.offer().Switch
	default:
		offered = v.offer().Level
	}
	if err := v.offer().CheckPoint(agents.OpMove, "output", r.Output, r.Value, offered); err != nil {
		return err
	}
	if err := agents.CheckNumber("for_seconds", r.For); err != nil {
		return err
	}
	if policy, err := v.Outputs.Policy(r.Output); err == nil && r.Value == policy.Safe {
		c.Ask.Effect = agents.Returns
	}
	if c.Ask.Effect != agents.Returns {
		c.confirm = v.point(r.Output).confirm
		c.renewal = r.Key == nil && r.Behalf.Asker.ID == "" && v.holds(c.who, r)
	}
	return nil
}

// try asks the guard whether it would refuse a move now; nothing moves.
func (v *view) try(ctx context.Context, c *Call, r agents.MoveRequest) error {
	return v.redact(c.who, v.Outputs.Try(ctx, c.who.ID, r.Output, r.Value, v.within(r.Output, c.Ask.For, c.limits)))
}

// expected returns how long a move would hold an output now. The guard has just told its state.
func (v *view) expected(c *Call, output string) time.Duration {
	s, ok := v.Outputs.StatusOf(output)
	length := v.within(output, c.Ask.For, c.limits)
	if length == 0 {
		length = v.usual(output)
	}
	if ok && s.Spare > 0 {
		length = min(length, s.Spare)
	}
	return length
}

func (v *view) move(ctx context.Context, c *Call, r agents.MoveRequest) (agents.Output, error) {
	s, err := v.Outputs.Move(ctx, c.who.ID, r.Output, r.Value, v.within(r.Output, c.Ask.For, c.limits))
	return v.output(s), v.redact(c.who, err)
}

// holds reports whether p holds an output at the value that it asks for.
func (v *view) holds(p agents.Principal, r agents.MoveRequest) bool {
	s, ok := v.Outputs.StatusOf(r.Output)
	return ok && s.Holder == p.ID && s.Goal == r.Value
}

// holdsOther reports whether p holds an output at another value than it asks for.
func (v *view) holdsOther(p agents.Principal, r agents.MoveRequest) bool {
	s, ok := v.Outputs.StatusOf(r.Output)
	return ok && s.Holder == p.ID && s.Goal != r.Value
}

// renew extends a lease of the caller. It is not charged and is journalled without a sync: renewals for
// a day neither use up a rate nor wear out a card.
func (v *view) renew(ctx context.Context, c *Call, r agents.MoveRequest) (agents.Output, error) {
	s, err := v.Outputs.Renew(ctx, c.who.ID, r.Output, r.Value, v.within(r.Output, c.Ask.For, c.limits))
	return v.output(s), v.redact(c.who, err)
}

// release returns an output to safe.
func (n *Node) release(ctx context.Context, c *Call, r agents.MoveRequest) (out agents.Output, err error) {
	v, p := c.view, c.who
	idle := v.idle(r.Output)
	if !idle { // before it can be seen
		n.released.Store(r.Output, releaser{n.owns(p), n.rank(p.ID)})
	}
	if r.Value.IsZero() {
		var s guard.Status
		if r.Held {
			s, err = v.Outputs.Renew(ctx, p.ID, r.Output, v.output(guard.Status{Output: r.Output}).Safe, 0)
		} else {
			s, err = v.Outputs.Release(ctx, r.Output)
		}
		out, err = v.output(s), v.redact(p, err)
	} else {
		c.limits = agents.Limits{}
		out, err = v.move(ctx, c, r)
	}
	if !idle {
		n.journal.Add(c.asked, outcome(out, err))
	}
	return out, err
}

// NoteRevoked records that an output was sent to safe because its holder's permission had
// ended. It is for the wiring: no caller comes here.
func (n *Node) NoteRevoked(output string) {
	tool, args := tools.OfMove(agents.MoveRequest{Output: output})
	text, err := json.Marshal(args, json.Deterministic(true))
	if err == nil {
		n.journal.Add(Asked{Who: "site", Tool: tool, Args: text}, Outcome{Says: "its holder's permission had ended"})
	}
}

// NoteDefect records that a hosted agent panicked. It is for the wiring: no caller comes here.
func (n *Node) NoteDefect(agent string, err error) {
	n.journal.Add(Asked{Who: agent, Tool: "run"}, outcome(nil, device.Faultf(device.Internal, "%w", err)))
}

// Stop sends every output to safe until an owner resets the emergency stop.
func (n *Node) Stop(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (out agents.Answers[agents.Stopped], err error) {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpStop, Effect: agents.Returns}, Terms: r.Terms, Args: none}
	v := n.enter(&c)
	if err := n.admit(&c, oneSite(r)); err != nil {
		return out, err
	}
	defer c.End()
	if !v.offer().Stop {
		return out, n.refuse(c.asked, device.Faultf(device.Invalid, "this site has no outputs to stop"))
	}
	if err := n.permitReturn(&c); err != nil {
		return out, err
	}
	idle := v.Outputs.Stopped()
	stopped := agents.Stopped{Stopped: true, Outputs: []agents.Proof{}}
	if err = v.redact(p, v.Outputs.Stop(ctx)); err == nil {
		for _, s := range v.Outputs.Status() {
			if v.sees(agents.OpOwn, s.Output) {
				stopped.Outputs = append(stopped.Outputs, v.proof(s))
			}
		}
		out.Sites = []agents.Stopped{stopped}
	}
	if !idle {
		n.journal.Add(c.asked, outcome(stopped, err))
	}
	return out, err
}

// within returns how long an output is held by a caller that may hold it for so long only. Longer
// lengths that it asked for were refused before.
func (v *view) within(output string, length time.Duration, l agents.Limits) time.Duration {
	if length == 0 && l.Lease > 0 && l.Lease < v.usual(output) {
		return l.Lease
	}
	return length
}

// usual returns how long the guard holds an output for a move without a length.
func (v *view) usual(output string) time.Duration {
	policy, err := v.Outputs.Policy(output)
	if err != nil {
		return guard.DefaultFor
	}
	return policy.Usual()
}

func lengthOf(forSeconds *float64) time.Duration {
	if forSeconds == nil {
		return 0
	}
	return time.Duration(math.Ceil(*forSeconds * float64(time.Second)))
}

// checkTerms checks the terms of a call, and takes over its key.
func (c *Call) checkTerms() error {
	if c.Terms.Key != nil {
		c.asked.Key = *c.Terms.Key
	}
	if err := c.Terms.CheckKey(); err != nil || c.Terms.Within == nil {
		return err
	}
	s := *c.Terms.Within
	if !(s > 0 && s <= maxWithin.Seconds()) {
		return device.Faultf(device.Invalid,
			"agentsite/expires-in: write a number of seconds above 0, at most %v", maxWithin.Seconds())
	}
	c.late = max(1, time.Duration(s*float64(time.Second)))
	return nil
}

// outcome returns the outcome of a call for the journal; v is its result.
func outcome(v any, err error) Outcome {
	var o Outcome
	if err == nil {
		o.Value, err = json.Marshal(v, json.Deterministic(true))
	}
	if err != nil {
		f := device.AsFault(err)
		o.Fault, o.Says = string(f.Kind), f.Msg
	}
	return o
}
