package node

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"

	"github.com/go-json-experiment/json"
)

const (
	maxDeeds = 10 // of an answer
	// The clock of the journal and that of the history may differ by clockSlack. A call that is
	// journalled after its end took callTime at most.
	clockSlack, callTime = 2 * time.Second, 10 * time.Second
)

// lookBack are the periods searched for changes of an output, until there are enough: nearly all of
// the past is on the disk.
var lookBack = [...]time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// Why explains a point that p may read.
func (n *Node) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (out agents.Why, err error) {
	ask := agents.Ask{Op: agents.OpWhy, Points: named(r.Point), Effect: agents.Reads}
	c := Call{who: p, Ask: ask, Terms: r.Terms, Args: r}
	v := n.enter(&c)
	if err := n.begin(&c, v.checkWhy(r)); err != nil {
		return out, err
	}
	defer c.End()
	out = agents.Why{Reading: n.reading(v, r.Point), Title: v.point(r.Point).Title, Output: v.detail(p, r.Point)}
	for _, q := range v.points {
		policy, err := v.Outputs.Policy(q.Address)
		if err == nil && (policy.Requires.Point == r.Point || policy.Expects.Point == r.Point) && v.reads(q.Address) {
			out.Needed = append(out.Needed, q.Address)
		}
	}
	if !v.part {
		out.Used = n.readers(r.Point)
	}
	if s, ok := v.Outputs.StatusOf(r.Point); ok && out.Output != nil {
		out, err = n.whyOutput(ctx, v, p, r, s, out)
	}
	return out, v.redact(p, err)
}

// checkWhy refuses a point that may not be read, and a value or a length that it cannot have.
func (v *view) checkWhy(r agents.WhyRequest) error {
	if err := v.checkRead("point", r.Point); err != nil {
		return err
	}
	if r.Value.IsZero() && r.For == nil {
		return nil
	}
	of := v.point(r.Point).Point
	if !of.Kind.Output() {
		return device.Faultf(device.Invalid, "point: %s is not an output, so that it cannot be moved", r.Point)
	}
	if of.Name = r.Point; !r.Value.IsZero() {
		if err := of.Accepts(r.Value); err != nil {
			return err
		}
	}
	return agents.CheckNumber("for_seconds", r.For)
}

// whyOutput adds the facts about an output to the answer.
func (n *Node) whyOutput(
	ctx context.Context, v *view, p agents.Principal, r agents.WhyRequest, s guard.Status, out agents.Why,
) (agents.Why, error) {
	policy, err := v.Outputs.Policy(s.Output)
	if err != nil {
		return out, err
	}
	out.Other = cmp.Or(r.Value, otherValue(policy, s.Goal))
	n.rehearse(ctx, v, p, r, &out)
	if !v.part {
		out.Name = n.nameOf(s.Holder)
	}
	leave, err := n.readPast(ctx)
	if err != nil {
		return out, err
	}
	changes := v.lastChanges(policy)
	leave()
	deeds := chain(changes, n.journal.Recent(s.Output), n.journal.Recent(agents.OpStop.Tool()), policy.Safe)
	if s.Holder != "" {
		out.Held, out.Via = held(deeds, s.Holder, v.now())
	}
	if v.part && s.Holder != p.ID {
		out.Via = nil
	}
	if !v.sees(agents.OpHistory, s.Output) {
		return out, nil
	}
	for _, d := range deeds[:min(len(deeds), maxDeeds)] {
		out.Changes = append(out.Changes, v.told(p, d.Event))
	}
	return out, nil
}

// rehearse adds to the answer what would come of a move to the value out.Other. A permission matters
// where the request is for a value or a length.
func (n *Node) rehearse(ctx context.Context, v *view, p agents.Principal, r agents.WhyRequest, out *agents.Why) {
	m := agents.MoveRequest{Output: r.Point, Value: out.Other, For: r.For, Terms: r.Terms}
	c := MoveOf(m)
	c.who = p
	var err error
	if !r.Value.IsZero() || r.For != nil {
		if err = v.planMove(&c, m); err == nil {
			c.limits, err = n.mayBoth(&c)
		}
		if c.limits.Confirm && !n.confirmed(&c) {
			out.Output.Confirm = "owner"
		}
	}
	length := v.within(r.Point, c.Ask.For, c.limits)
	if err == nil {
		err = v.Outputs.Try(ctx, p.ID, r.Point, m.Value, length)
	}
	if over := n.outranked(p, v, r.Point); over != "" && err != nil && device.AsFault(err).Kind == device.Busy {
		err = v.Outputs.Try(ctx, over, r.Point, m.Value, length)
	}
	if s, ok := v.Outputs.StatusOf(r.Point); ok { // which the guard has just told
		now := v.doing(p, s)
		out.Output.Set, out.Output.Measured = now.Set, now.Measured
		out.Output.MaxOn, out.Output.Duty = v.allowances(s)
	}
	switch {
	case err != nil:
		f := device.AsFault(err)
		if !v.hides(f) {
			out.Until = seconds(f.After)
		}
		f = device.AsFault(v.redact(p, err))
		out.Refused, out.Kind = f.Msg, string(f.Kind)
	case out.Other != out.Output.Safe:
		out.Holds = seconds(v.expected(&c, r.Point))
	}
}

// otherValue returns a value that an output could be moved to, which it is not going to now.
func otherValue(policy guard.Policy, goal device.Value) device.Value {
	switch {
	case goal != policy.Safe:
		return policy.Safe
	case goal.Type() == device.TypeBool:
		return device.Bool(!goal.Bool())
	case goal == device.Number(policy.Range.Max):
		return device.Number(policy.Range.Min)
	}
	return device.Number(policy.Range.Max)
}

// nameOf returns a name of a principal for people, if its ID does not say it.
func (n *Node) nameOf(who string) string {
	switch who {
	case LocalOwner.ID:
		return "somebody on the site's own machine"
	case LocalAgent.ID:
		return "an agent on the site's own machine"
	case siteToken.ID:
		return "a program with the site's own token"
	}
	if n.access == nil || who == "" {
		return ""
	}
	return n.access.NameOf(who)
}

// told returns an event as far as p may know it. A principal with a partial view is told only its
// own name, and no answers to others: these may name points that it does not see.
func (v *view) told(p agents.Principal, d agents.Event) agents.Event {
	if !v.part {
		return d
	}
	d.Holder = v.named(p, d.Holder)
	if d.By != p.ID {
		d.By, d.Via, d.Says = v.named(p, d.By), nil, ""
	}
	return d
}

// deed is an event of an output with its time.
type deed struct {
	agents.Event
	at     time.Time
	change bool      // and not a call alone
	end    time.Time // of a ramp: the time of its last step, whose value it has
}

// lastChanges returns the last changes of an output, the newest first. The steps of a ramp are one.
func (v *view) lastChanges(policy guard.Policy) (all []deed) {
	if v.Site.History == nil {
		return nil
	}
	now := v.now()
	for _, back := range lookBack {
		all = all[:0]
		v.Site.History.Changes(policy.Output, now.Add(-back), now.Add(time.Minute), func(c device.Change) bool {
			d := deed{agents.Event{Time: stamp(c.At), Value: c.Value, Holder: c.Holder, Cause: c.Cause}, c.At, true, c.At}
			if n := len(all); n > 0 && all[n-1].ramps(d, policy) {
				all[n-1].Value, all[n-1].end = c.Value, c.At
				return true
			}
			if len(all) == 2*maxDeeds {
				all = append(all[:0], all[maxDeeds:]...)
			}
			all = append(all, d)
			return true
		})
		if len(all) > maxDeeds {
			break
		}
	}
	slices.Reverse(all)
	return all
}

// ramps reports whether next is a further step of a ramp.
func (d *deed) ramps(next deed, policy guard.Policy) bool {
	numbers := d.Value.Type() == device.TypeNumber && next.Value.Type() == device.TypeNumber
	if policy.Slew.PerSecond == 0 || !numbers || d.Holder != next.Holder || d.Cause != next.Cause {
		return false
	}
	step := (policy.Range.Max - policy.Range.Min) / 50 // twice the guard's
	return next.at.Sub(d.end).Seconds() <= step/policy.Slew.PerSecond+clockSlack.Seconds() &&
		math.Abs(next.Value.Number()-d.Value.Number()) <= max(step, policy.Slew.PerSecond)
}

// chain joins the changes of an output with the calls about it and the emergency stops, the
// newest first.
func chain(all []deed, calls, stops []Recorded, safe device.Value) []deed {
	changes := len(all)
	for _, r := range calls {
		value := asked(r.Asked, safe)
		if !match(all[:changes], r, value, safe, "") {
			d := deed{Event: agents.Event{Time: stamp(r.Begun), Value: value}, at: r.Begun}
			d.by(r)
			all = append(all, d)
		}
	}
	for _, r := range stops {
		match(all[:changes], r, safe, safe, guard.WhyStopped)
	}
	slices.SortStableFunc(all, func(a, b deed) int { return b.at.Compare(a.at) })
	return all
}

// match adds a call to the changes that it made, and reports whether the first of equal calls made
// one. cause is the cause of a return to safe by such a call.
func match(changes []deed, r Recorded, value, safe device.Value, cause string) (found bool) {
	if r.Outcome != Done && r.Outcome != "" && r.Outcome != string(device.UnknownOutcome) {
		return false
	}
	from, to := r.Begun.Add(-clockSlack), r.Ended.Add(clockSlack)
	switch {
	case r.Ended.IsZero():
		to = r.Begun.Add(callTime + clockSlack)
	case r.Ended.Equal(r.Begun): // it was written down when it was over
		from = from.Add(-callTime)
	}
	var nearest *deed // to the end of a call that stands alone
	away := func(d *deed) time.Duration { return d.at.Sub(to.Add(-clockSlack)).Abs() }
	for i := range changes {
		d := &changes[i]
		took := d.Holder == r.Who && (value.IsZero() || d.Value == value || d.end.After(d.at))
		if value == safe {
			took = d.Holder == "" && d.Cause == cause && (d.Value == safe || d.end.After(d.at))
		}
		switch {
		case !took || d.Tool != "" || d.at.Before(from) || d.at.After(to):
		case r.Count > 1:
			d.by(r)
			found = found || d.at.Before(r.Begun.Add(callTime))
		case nearest == nil || away(d) < away(nearest):
			nearest = d
		}
	}
	if nearest != nil {
		nearest.by(r)
		found = true
	}
	return found
}

// by adds the call that made d.
func (d *deed) by(r Recorded) {
	d.By, d.Via, d.Tool, d.Outcome, d.Says = r.Who, r.Via, r.Tool, cmp.Or(r.Outcome, "running"), r.Says
	if r.Count > 1 {
		d.Times = r.Count
	}
}

// asked returns the value that a call asked for, the safe one for a release; none for a
// take-over, which asks for no other.
func asked(a Asked, safe device.Value) device.Value {
	var args struct {
		On    *bool    `json:"on"`
		Value *float64 `json:"value"`
	}
	switch {
	case a.Tool == tools.ReleaseOutput:
		return safe
	case json.Unmarshal(a.Args, &args) != nil:
	case args.On != nil:
		return device.Bool(*args.On)
	case args.Value != nil:
		return device.Number(*args.Value)
	}
	return device.Value{}
}

// held returns for how many seconds a holder has had an output, and the chain of callers of its
// last call.
func held(all []deed, holder string, now time.Time) (length float64, via []string) {
	if i := slices.IndexFunc(all, func(d deed) bool { return d.By == holder && d.Outcome == Done }); i >= 0 {
		length, via = seconds(max(0, now.Sub(all[i].at))), all[i].Via
	}
	for _, d := range all {
		if d.change && d.Holder != holder {
			break
		}
		if d.change {
			length = seconds(max(0, now.Sub(d.at)))
		}
	}
	return length, via
}
