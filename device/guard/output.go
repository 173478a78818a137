package guard

import (
	"time"

	"agentsite/device"
)

// output is the state of one output. A zero goal or want is no valid value; use newOutput.
type output struct {
	Policy
	goal    device.Value
	want    device.Value // the next step of a ramp, else goal
	have    device.Value // last value confirmed by the hardware; zero while unknown
	retired bool         // the next plan does not have it
	moving  bool         // a write has begun, so the hardware may differ from have
	holder  string       // of the lease; "" while goal is safe
	until   Time         // when the lease ends
	ends    Reason       // why the lease will end
	ended   Reason       // why the last lease ended, or byStart; byNobody during a lease
	away    bool         // has left safe, and its return is not confirmed
	since   Time         // when it left; valid while away
	back    Time         // last confirmed return
	changed Time         // last change of the value away from safe, or the start
	// used is the part of max_on that earlier trips used. Only a rest at safe restores it:
	// otherwise a caller could hold an output without limit by short returns.
	used  time.Duration
	duty  *window // nanoseconds away from safe, without the current trip; or nil
	rate  *window // moves, each counted as bins; or nil
	fault string  // why the last write failed

	set, measured     device.Value // the last confirmed write, and the value read back since; zero for none
	setAt, measuredAt Time
	blind             bool // the device was read, and told no value of it

	numbered lease // as it was when state was given
	state    int64

	nextStep Time         // of a ramp, at the earliest
	lacks    lack         // why its requirement is not met
	fresh    Time         // until when the last reading of the required point is valid
	told     device.Value // value of that reading
	effect   effect
	vain     vain
}

// lease is the part of an output's state whose changes are numbered.
type lease struct {
	goal   device.Value
	holder string
	ended  Reason
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
	Silence // the site does not respond
	Unread  // an emergency stop cannot be read
	byFault
	byInterlock
	byRequirement
	byEffect
	byPlan
	byStart
)

// newOutput returns an output in an unknown state, to be driven to safe. Its time away before
// the start is unknown, so max_on counts as spent.
func newOutput(now Time, p Policy) output {
	o := output{Policy: p, goal: p.Safe, want: p.Safe, away: true, since: now, back: now, changed: now, used: p.MaxOn, ended: byStart}
	if p.Duty.Window > 0 {
		o.duty = newWindow(now, p.Duty.Window, int64(p.Duty.Away))
	}
	if p.Rate.Window > 0 {
		o.rate = newWindow(now, p.Rate.Window, int64(p.Rate.Moves)*bins)
	}
	return o
}

// refuseChange returns why the output may not get another value away from safe now, for any
// caller.
func (o *output) refuseChange(now Time) error {
	if wait := o.MinOn - (now - o.changed); wait > 0 {
		return device.Faultf(device.Unsafe, "%s keeps a value for min_on, %v, but for its return to safe; try again in %v",
			o.Output, o.MinOn, roundUp(wait)).In(wait)
	}
	if o.rate != nil && o.rate.left(now) < bins {
		if o.rate.left(now)+o.rate.assumed(now) >= bins {
			return device.Faultf(device.Unsafe, "%s may be moved %d times in %v, over all callers, and it has just started: the time before counts as used; try again in %v",
				o.Output, o.Rate.Moves, o.Rate.Window, roundUp(o.rate.wait(now, bins))).In(o.rate.wait(now, bins))
		}
		return device.Faultf(device.Unsafe, "%s has been moved %d times in %v, over all callers; try again in %v",
			o.Output, o.Rate.Moves, o.Rate.Window, roundUp(o.rate.wait(now, bins))).In(o.rate.wait(now, bins))
	}
	if left, _ := o.left(now); o.away && left < o.MinOn {
		return device.Faultf(device.Unsafe, "%s may stay away from safe for no more than %v, and another value needs min_on, %v; return it to safe first", o.Output, left, o.MinOn)
	}
	return nil
}

// kept returns for how long from now the value v must be kept.
func (o *output) kept(now Time, v device.Value) time.Duration {
	if v != o.goal {
		return o.MinOn
	}
	return o.MinOn - (now - o.changed)
}

// toSafe returns the output to safe: at once, or by a ramp if the policy has one and the
// present value is known.
func (o *output) toSafe(why Reason) {
	if o.holder != "" {
		o.ended = why
	}
	o.goal, o.holder, o.until, o.effect.awaited = o.Safe, "", 0, false
	if !o.Slew.Ramp || o.have.IsZero() || o.have == o.Safe {
		o.want = o.Safe
	}
	if o.have == o.Safe && !o.moving {
		o.away = false // nothing was written, so it has not left safe
	}
}

// leave begins a trip, if none has begun.
func (o *output) leave(now Time) {
	if o.away {
		return
	}
	if o.rested(now) {
		o.used, o.vain.used = 0, 0
	}
	o.away, o.since = true, now
}

// arrive ends a trip: the hardware is confirmed as safe.
func (o *output) arrive(now Time) {
	o.used = add(o.used, now-o.since)
	if o.duty != nil {
		o.duty.span(o.since, now)
	}
	o.endVain(now)
	o.back = now
	o.away, o.since = o.goal != o.Safe, now // another move began meanwhile: a new trip begins
}

// left returns how long the output may stay away from safe, if necessary from now on, and
// the limit that decides.
func (o *output) left(now Time) (left time.Duration, by Reason) {
	left, by = o.maxOnLeft(now), byMaxOn
	if o.duty == nil {
		return left, by
	}
	if duty := o.dutyLeft(now); duty < left {
		return duty, byDuty
	}
	return left, by
}

// maxOnLeft returns how long the output may stay away from safe within its max_on.
func (o *output) maxOnLeft(now Time) time.Duration {
	used := o.used
	switch {
	case o.away:
		used = add(used, now-o.since)
	case o.rested(now):
		used = 0
	}
	return o.MaxOn - used - o.ramp()
}

// dutyLeft returns how long the output may stay away from safe within its duty.
func (o *output) dutyLeft(now Time) time.Duration {
	left := time.Duration(o.duty.left(now)) - o.ramp()
	if o.away {
		left -= now - max(o.since, o.duty.outside(now))
	}
	return left
}

// rested reports whether an output at safe has rested long enough.
func (o *output) rested(now Time) bool { return now-o.back >= o.Rest }

// spent reports whether too little of max_on is left for another trip.
func (o *output) spent() bool { return o.MaxOn-o.used < max(o.MinOn, 1)+o.ramp() }

// restLeft returns how long an output at safe has to stay there.
func (o *output) restLeft(now Time) time.Duration {
	if o.away {
		return 0
	}
	rest := o.MinOff
	if o.spent() {
		rest = max(o.MinOff, o.Rest)
	}
	return max(0, rest-(now-o.back))
}

// dutyWait returns how long it takes until an output at safe has enough duty for another
// trip.
func (o *output) dutyWait(now Time) time.Duration {
	if o.duty == nil {
		return 0
	}
	return o.duty.wait(now, int64(max(o.MinOn, 1)+o.ramp()))
}

// wait returns how long it takes until the output's own limits permit a move away from safe.
func (o *output) wait(now Time) time.Duration {
	if o.holder != "" {
		return 0
	}
	wait := max(o.restLeft(now), o.MinOn-(now-o.changed), o.dutyWait(now))
	if o.rate != nil {
		wait = max(wait, o.rate.wait(now, bins))
	}
	return max(0, wait)
}
