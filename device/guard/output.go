package guard

import (
	"time"

	"agentsite/device"
)

// output is one output's state. Its zero goal and want stand for none: newOutput makes
// one.
type output struct {
	Policy
	goal    device.Value
	want    device.Value // on a ramp a step towards goal, else goal
	have    device.Value // what the hardware last confirmed; zero while it is not known
	retired bool         // the plan without it is on its way
	moving  bool         // a write is on its way, so the hardware may have left have
	holder  string       // who has the lease; "" when goal is safe
	until   Time         // when the lease ends
	ends    Reason       // why it will
	ended   Reason       // why the last one did; byNobody while somebody holds it
	away    bool         // has left safe and is not known to be back
	since   Time         // when it left; means something while away
	back    Time         // when it was last known to come back
	changed Time         // when it last got another value away from safe, or a start
	// used is what earlier trips took of max_on. Only a rest at safe gives it back:
	// a shorter return would let a caller hold an output for ever.
	used  time.Duration
	duty  *window // of nanoseconds away from safe, without the present trip; or nil
	rate  *window // of moves, each worth bins; or nil
	fault string  // why the last write failed

	nextStep Time         // of a ramp, at the earliest
	lacks    lack         // what is wrong with the point that it requires
	fresh    Time         // until when what was told of that point holds
	told     device.Value // what it was
}

// Reason is why an output returns to safe.
type Reason uint8

const (
	byNobody Reason = iota
	byRelease
	byExpiry
	byMaxOn
	byDuty
	byStop
	Silence // nobody is heard any more
	Unread  // an emergency stop cannot be read
	byFault
	byInterlock
	byRequirement
	byPlan
)

// newOutput is an output of which nothing is known but that it has to be safe: for how
// long it was away before a start nobody knows, so for too long.
func newOutput(now Time, p Policy) output {
	o := output{Policy: p, goal: p.Safe, want: p.Safe, away: true, since: now, back: now, changed: now, used: p.MaxOn}
	if p.Duty.Window > 0 {
		o.duty = newWindow(now, p.Duty.Window, int64(p.Duty.Away))
	}
	if p.Rate.Window > 0 {
		o.rate = newWindow(now, p.Rate.Window, int64(p.Rate.Moves)*bins)
	}
	return o
}

// refuseChange says why the output may not have another value away from safe now,
// whoever asks.
func (o *output) refuseChange(now Time) error {
	if wait := o.MinOn - (now - o.changed); wait > 0 {
		return device.Faultf(device.Unsafe, "%s keeps a value for min_on, %v, but for its return to safe; try again in %v", o.Output, o.MinOn, roundUp(wait))
	}
	if o.rate != nil && o.rate.left(now) < bins {
		return device.Faultf(device.Unsafe, "%s has been moved %d times in %v, over all callers; try again in %v",
			o.Output, o.Rate.Moves, o.Rate.Window, roundUp(o.rate.wait(now, bins)))
	}
	if left, _ := o.left(now); o.away && left < o.MinOn {
		return device.Faultf(device.Unsafe, "%s may stay away from safe for no more than %v, and another value needs min_on, %v; return it to safe first", o.Output, left, o.MinOn)
	}
	return nil
}

// kept is for how long from now the value v has to be kept.
func (o *output) kept(now Time, v device.Value) time.Duration {
	if v != o.goal {
		return o.MinOn
	}
	return o.MinOn - (now - o.changed)
}

// toSafe sends the output to safe: at once, unless a ramp is the safe way and it is
// known where the ramp begins.
func (o *output) toSafe(why Reason) {
	if o.holder != "" {
		o.ended = why
	}
	o.goal, o.holder, o.until = o.Safe, "", 0
	if !o.Slew.Ramp || o.have.IsZero() || o.have == o.Safe {
		o.want = o.Safe
	}
	if o.have == o.Safe && !o.moving {
		o.away = false // nothing was written, so it never left
	}
}

// leave begins a trip, where none has begun yet.
func (o *output) leave(now Time) {
	if o.away {
		return
	}
	if o.rested(now) {
		o.used = 0
	}
	o.away, o.since = true, now
}

// arrive ends a trip: the hardware is known to be safe.
func (o *output) arrive(now Time) {
	o.used = add(o.used, now-o.since)
	if o.duty != nil {
		o.duty.span(o.since, now)
	}
	o.back = now
	o.away, o.since = o.goal != o.Safe, now // wanted elsewhere again meanwhile: it leaves at once
}

// left is how long the output may still be wanted away from safe, were it to leave now
// where it has not, and what bounds that.
func (o *output) left(now Time) (left time.Duration, by Reason) {
	used := o.used
	switch {
	case o.away:
		used = add(used, now-o.since)
	case o.rested(now):
		used = 0
	}
	left, by = o.MaxOn-used-o.ramp(), byMaxOn
	if o.duty == nil {
		return left, by
	}
	if duty := o.dutyLeft(now); duty < left {
		return duty, byDuty
	}
	return left, by
}

// dutyLeft is how long the output may still be wanted away from safe within its duty.
func (o *output) dutyLeft(now Time) time.Duration {
	left := time.Duration(o.duty.left(now)) - o.ramp()
	if o.away {
		left -= now - max(o.since, o.duty.outside(now))
	}
	return left
}

// rested reports whether an output at safe has been there for a rest.
func (o *output) rested(now Time) bool { return now-o.back >= o.Rest }

// spent reports whether too little of max_on is left for another trip.
func (o *output) spent() bool { return o.MaxOn-o.used < max(o.MinOn, 1)+o.ramp() }

// rest is how long an output at safe stays there.
func (o *output) rest(now Time) time.Duration {
	if o.away {
		return 0
	}
	rest := o.MinOff
	if o.spent() {
		rest = max(o.MinOff, o.Rest)
	}
	return max(0, rest-(now-o.back))
}

// dutyWait is how long it takes until an output at safe has enough of its duty again
// for another trip.
func (o *output) dutyWait(now Time) time.Duration {
	if o.duty == nil {
		return 0
	}
	return o.duty.wait(now, int64(max(o.MinOn, 1)+o.ramp()))
}

// wait is how long it takes until the output can be moved away from safe, as far as
// its own limits go.
func (o *output) wait(now Time) time.Duration {
	if o.holder != "" {
		return 0
	}
	wait := max(o.rest(now), o.MinOn-(now-o.changed), o.dutyWait(now))
	if o.rate != nil {
		wait = max(wait, o.rate.wait(now, bins))
	}
	return max(0, wait)
}
