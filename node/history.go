package node

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

const (
	defaultHours = 12
	defaultSteps = 24
	maxChanges   = 500 // in one answer
)

// History returns how a point went.
func (n *Node) History(
	ctx context.Context, p agents.Principal, r agents.HistoryRequest,
) (out agents.History, err error) {
	ask := agents.Ask{Op: agents.OpHistory, Points: named(r.Point), Effect: agents.Reads}
	c := Call{who: p, Ask: ask, Terms: r.Terms, Args: r}
	v := n.enter(&c)
	from, to, wrong := v.planHistory(r)
	if err := n.begin(&c, wrong); err != nil {
		return out, err
	}
	defer c.End()
	leave, err := n.readPast(ctx)
	if err != nil {
		return out, v.redact(p, err)
	}
	defer leave()
	of := v.point(r.Point)
	if of.Kind != device.KindMeasurement {
		return v.changes(p, of, from, to), nil
	}
	out, err = v.summarize(of, from, to, r.Steps)
	return out, v.redact(p, err)
}

// planHistory checks a request, and returns the range of time that it asks for.
func (v *view) planHistory(r agents.HistoryRequest) (from, to time.Time, err error) {
	err = v.offer().CheckPoint(agents.OpHistory, "point", r.Point, device.Value{}, v.offer().History)
	if err != nil {
		return from, to, err
	}
	return rangeOf(r, v.now())
}

// readPast waits until fewer than two callers read the past, for which a small board's card and
// memory are enough.
func (n *Node) readPast(ctx context.Context) (leave func(), err error) {
	select {
	case n.past <- struct{}{}:
		return func() { <-n.past }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReadPast waits for one of the slots for reads of the past, for p. The caller releases it by leave. It is a Busy fault
// for a caller with too many of them: the slots are for all.
func (n *Node) ReadPast(ctx context.Context, p agents.Principal) (leave func(), err error) {
	if err := known(p); err != nil {
		return nil, err
	}
	place, err := n.Hold(p, replays)
	if err != nil {
		return nil, err
	}
	release, err := n.readPast(ctx)
	if err != nil {
		place.Leave()
		return nil, err
	}
	return func() { release(); place.Leave() }, nil
}

// rangeOf returns the range of time that a request asks for; now is the end of one without an end.
func rangeOf(r agents.HistoryRequest, now time.Time) (from, to time.Time, err error) {
	if err = agents.CheckNumber("hours", r.Hours); err == nil {
		err = agents.CheckNumber("steps", r.Steps)
	}
	to = now
	if err == nil && r.To != "" {
		to, err = parseTime("to", r.To)
	}
	if err != nil {
		return from, to, err
	}
	hours := float64(defaultHours)
	if r.Hours != nil {
		hours = *r.Hours
	}
	from = to.Add(-time.Duration(hours * float64(time.Hour)))
	if r.From != "" {
		if from, err = parseTime("from", r.From); err == nil && r.Hours != nil {
			err = device.Faultf(device.Invalid, "from and hours say the same: leave one out")
		}
	}
	if err == nil && !from.Before(to) {
		err = device.Faultf(device.Invalid, "from: %s is not before the end, %s", stamp(from), stamp(to))
	}
	return from, to, err
}

func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || len(text) > len(time.RFC3339Nano) {
		return t, device.Faultf(device.Invalid,
			"%s: %.40q is no time; write RFC 3339, such as 2026-01-31T18:00:00Z", field, text)
	}
	return t, nil
}

func (v *view) summarize(of *point, from, to time.Time, steps *float64) (agents.History, error) {
	many := defaultSteps
	if steps != nil {
		many = int(*steps)
	}
	all, length, err := v.Site.History.Summaries(of.Address, from, to, many)
	if err != nil {
		return agents.History{}, err
	}
	out := agents.History{
		Point: of.Address, Unit: of.Unit, Length: seconds(length), Steps: make([]agents.Step, 0, len(all)),
	}
	var whole device.Summary
	for _, s := range all {
		if s.Good == 0 {
			continue
		}
		if whole.Good == 0 {
			whole.Min, whole.Max = s.Min, s.Max
		}
		whole.Min, whole.Max = min(whole.Min, s.Min), max(whole.Max, s.Max)
		whole.Good += s.Good
		whole.Mean += (s.Mean - whole.Mean) * float64(s.Good) / float64(whole.Good)
		step := agents.Step{Time: stamp(s.At), Min: s.Min, Mean: device.Tidy(s.Mean), Max: s.Max, Last: s.Last}
		if s.Good < s.Count {
			step.Good = device.Tidy(float64(s.Good) / float64(s.Count))
		}
		out.Steps = append(out.Steps, step)
	}
	if whole.Good > 0 {
		whole.Mean = device.Tidy(whole.Mean)
		out.Min, out.Mean, out.Max = &whole.Min, &whole.Mean, &whole.Max
	}
	return out, nil
}

// changes returns the newest changes of a point that is no measurement.
func (v *view) changes(p agents.Principal, of *point, from, to time.Time) agents.History {
	out := agents.History{Point: of.Address, Unit: of.Unit, Changes: []agents.Event{}}
	add := func(c device.Change) bool {
		if len(out.Changes) >= 2*maxChanges {
			out.Changes = append(out.Changes[:0], out.Changes[maxChanges:]...)
			out.Cut = true
		}
		e := agents.Event{Time: stamp(c.At), Value: c.Value, Holder: v.named(p, c.Holder), Cause: c.Cause}
		out.Changes = append(out.Changes, e)
		return true
	}
	if of.Kind != device.KindEvent {
		if c, ok := v.Site.History.ValueAt(of.Address, from); ok && c.At.Before(from) {
			add(c)
		}
	}
	v.Site.History.Changes(of.Address, from, to, add)
	if more := len(out.Changes) - maxChanges; more > 0 {
		out.Changes, out.Cut = out.Changes[more:], true
	}
	return out
}
