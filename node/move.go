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
	if o := n.sitesOf(p); o != nil && isElsewhere(r.Output) {
		return n.moveElsewhere(ctx, p, o, r)
	}
	came := time.Now()
	c := call{
		who: p, ask: agents.Ask{Op: agents.OpMove, Points: named(r.Output), Value: r.Value, For: lengthOf(r.For)}, terms: r.Terms,
		args: func() any { _, args := tools.OfMove(r); return args },
	}
	a, err := n.admit(&c, func(v *view) error { return v.planMove(&c, r) })
	if err != nil {
		return out, err
	}
	defer a.place.Leave()
	if c.ask.Effect == agents.Returns {
		if err := n.permitReturn(&c, a.asked); err != nil {
			return out, err
		}
		return n.release(ctx, p, a, r)
	}
	late, err := checkTerms(c.terms, &a.asked)
	if err != nil {
		return out, n.refuse(a.asked, err)
	}
	if earlier, err := n.journal.Replay(a.asked); earlier != nil || err != nil {
		return replayed[agents.Output](earlier, err)
	}
	if c.renewal {
		if err := inTime(ctx, came, late); err != nil {
			return out, n.refuse(a.asked, err)
		}
		if out, err := a.view.renew(ctx, p, r, c.ask.For, a.limits); err == nil || device.AsFault(err).Kind != device.Expired {
			n.journal.Add(a.asked, outcome(out, err))
			return out, err
		} // the lease has ended since, so that this would be a move
	}
	if r.Held && !a.view.holdsOther(p, r) {
		return out, n.refuse(a.asked, device.Faultf(device.Expired, "%s is not held by the caller any more", r.Output))
	}
	if err := a.view.try(ctx, p, r, c.ask.For, a.limits); err != nil && (device.AsFault(err).Kind != device.Busy || n.outranked(p, a.view, r.Output) == "") {
		return out, n.refuse(a.asked, err)
	}
	c.holds = a.view.expected(r.Output, c.ask.For, a.limits)
	limits, err := n.permit(&c, a.asked)
	if err != nil {
		return out, err
	}
	return actOnce(ctx, n, a.asked, came, late, func() (agents.Output, error) {
		// From here on the caller may go: a repeated call is answered with the outcome.
		ctx := context.WithoutCancel(ctx)
		out, err := n.moveAbove(ctx, p, a.view, r, c.ask.For, limits)
		n.noteBehalf(&c, out, err)
		switch {
		case err == nil && !n.mayHold(p, c.ask.Points): // revoked meanwhile
			_, undone := a.view.Outputs.Release(ctx, r.Output)
			return agents.Output{}, errors.Join(errRevoked, undone)
		case err != nil:
			n.recall() // it may have moved
		}
		return out, err
	})
}

// Try returns why an output of this site cannot be moved now. Nothing moves, and no rate is charged.
func (n *Node) Try(ctx context.Context, p agents.Principal, r agents.MoveRequest) error {
	c := call{
		who:   p,
		ask:   agents.Ask{Op: agents.OpMove, Points: named(r.Output), Value: r.Value, For: lengthOf(r.For)},
		terms: r.Terms,
		args:  none,
	}
	a, err := n.admit(&c, func(v *view) error { return v.planMove(&c, r) })
	if err != nil {
		return err
	}
	defer a.place.Leave()
	if c.ask.Effect == agents.Returns {
		return nil
	}
	return a.view.try(ctx, p, r, c.ask.For, a.limits)
}

// actOnce stores the intent of a call durably, then makes it, and journals its outcome. A call
// with the same key before it answers for it. A call that came at a time and may not begin later
// than late after it, or whose caller is gone, is not made.
func actOnce[T any](ctx context.Context, n *Node, asked Asked, came time.Time, late time.Duration, act func() (T, error)) (out T, err error) {
	end, earlier, err := n.journal.Begin(asked)
	if earlier != nil || err != nil {
		return replayed[T](earlier, err)
	}
	over := Outcome{Fault: string(device.UnknownOutcome), Says: "a defect of the program ended this call; whether it was done is not known"}
	defer func() { end(over) }() // also of a panic: a repeated call does not wait for it
	if err = inTime(ctx, came, late); err == nil {
		out, err = act()
	}
	over = outcome(out, err)
	return out, err
}

// inTime refuses a call that came at a time and may not begin now.
func inTime(ctx context.Context, came time.Time, late time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return device.Faultf(device.Expired, "the caller had gone before this could begin, and nothing was done; call again with another key")
	case late > 0 && time.Since(came) > late:
		return device.Faultf(device.Expired, "this could not begin within %v, and nothing was done; call again with another key", late)
	}
	return nil
}

// planMove checks a move, and finds out whether it returns to safe and whether an owner
// wants to be asked first.
func (v *view) planMove(c *call, r agents.MoveRequest) error {
	offered := v.offer().Release
	switch r.Value.Type() {
	case device.TypeNone:
		c.ask.Effect = agents.Returns
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
		c.ask.Effect = agents.Returns
	}
	if c.ask.Effect != agents.Returns {
		c.confirm = v.point(r.Output).confirm
		c.renewal = r.Key == nil && r.Behalf.Asker.ID == "" && v.holds(c.who, r)
	}
	return nil
}

// try asks the guard whether it would refuse a move now; nothing moves.
func (v *view) try(ctx context.Context, p agents.Principal, r agents.MoveRequest, length time.Duration, l agents.Limits) error {
	return v.redact(p, v.Outputs.Try(ctx, p.ID, r.Output, r.Value, v.within(r.Output, length, l)))
}

// expected returns how long a move would hold an output now. The guard has just told its state.
func (v *view) expected(output string, length time.Duration, l agents.Limits) time.Duration {
	s, ok := v.Outputs.StatusOf(output)
	if length = v.within(output, length, l); length == 0 {
		length = v.usual(output)
	}
	if ok && s.Spare > 0 {
		length = min(length, s.Spare)
	}
	return length
}

func (v *view) move(ctx context.Context, p agents.Principal, r agents.MoveRequest, length time.Duration, l agents.Limits) (agents.Output, error) {
	s, err := v.Outputs.Move(ctx, p.ID, r.Output, r.Value, v.within(r.Output, length, l))
	return v.output(s), v.redact(p, err)
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

// renew extends a lease of p. It is not charged and is journalled without a sync: renewals for a
// day neither use up a rate nor wear out a card.
func (v *view) renew(ctx context.Context, p agents.Principal, r agents.MoveRequest, length time.Duration, l agents.Limits) (agents.Output, error) {
	s, err := v.Outputs.Renew(ctx, p.ID, r.Output, r.Value, v.within(r.Output, length, l))
	return v.output(s), v.redact(p, err)
}

// release returns an output to safe.
func (n *Node) release(ctx context.Context, p agents.Principal, a admitted, r agents.MoveRequest) (out agents.Output, err error) {
	idle := a.view.idle(r.Output)
	if !idle { // before it can be seen
		n.released.Store(r.Output, releaser{n.owns(p), n.rank(p.ID)})
	}
	if r.Value.IsZero() {
		var s guard.Status
		if r.Held {
			s, err = a.view.Outputs.Renew(ctx, p.ID, r.Output, a.view.output(guard.Status{Output: r.Output}).Safe, 0)
		} else {
			s, err = a.view.Outputs.Release(ctx, r.Output)
		}
		out, err = a.view.output(s), a.view.redact(p, err)
	} else {
		out, err = a.view.move(ctx, p, r, lengthOf(r.For), agents.Limits{})
	}
	if !idle {
		n.journal.Add(a.asked, outcome(out, err))
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
func (n *Node) Stop(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Stopped], error) {
	c := call{who: p, ask: agents.Ask{Op: agents.OpStop, Effect: agents.Returns}, terms: r.Terms, args: none}
	a, err := n.admit(&c, oneSite(r))
	if err != nil {
		return agents.Answers[agents.Stopped]{}, err
	}
	defer a.place.Leave()
	v := a.view
	if !v.offer().Stop {
		return agents.Answers[agents.Stopped]{}, n.refuse(a.asked, device.Faultf(device.Invalid, "this site has no outputs to stop"))
	}
	if err := n.permitReturn(&c, a.asked); err != nil {
		return agents.Answers[agents.Stopped]{}, err
	}
	idle := v.Outputs.Stopped()
	out := agents.Stopped{Stopped: true, Outputs: []agents.Output{}}
	if err = v.redact(p, v.Outputs.Stop(ctx)); err == nil {
		for _, s := range v.Outputs.Status() {
			if v.sees(agents.OpOwn, s.Output) {
				out.Outputs = append(out.Outputs, v.output(s))
			}
		}
	}
	if !idle {
		n.journal.Add(a.asked, outcome(out, err))
	}
	if err != nil {
		return agents.Answers[agents.Stopped]{}, err
	}
	return agents.Answers[agents.Stopped]{Sites: []agents.Stopped{out}}, nil
}

// within is how long an output is held that a caller may hold for so long only. Longer
// ones that it asked for were refused before. usual is the length of a move without one.
func within(length, usual time.Duration, l agents.Limits) time.Duration {
	if length == 0 && l.Lease > 0 && l.Lease < usual {
		return l.Lease
	}
	return length
}

// within is within for an output of this site.
func (v *view) within(output string, length time.Duration, l agents.Limits) time.Duration {
	if length > 0 || l.Lease == 0 {
		return length
	}
	return within(length, v.usual(output), l)
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

// checkTerms checks the terms of a call, and copies its key. Late is how long after its coming the
// call may still begin; 0 is for ever.
func checkTerms(t agents.Terms, asked *Asked) (late time.Duration, err error) {
	if t.Key != nil {
		asked.Key = *t.Key
	}
	if err := t.CheckKey(); err != nil {
		return 0, err
	}
	if t.Within == nil {
		return 0, nil
	}
	if s := *t.Within; !(s > 0 && s <= maxWithin.Seconds()) {
		return 0, device.Faultf(device.Invalid, "agentsite/expires-in: write a number of seconds above 0, at most %v", maxWithin.Seconds())
	}
	return max(1, time.Duration(*t.Within*float64(time.Second))), nil
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

// replayed is an earlier outcome as the answer to a later call.
func replayed[T any](o *Outcome, err error) (out T, _ error) {
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
