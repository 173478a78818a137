package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/device"
)

// Status is the state of an output. Times are durations from now, so that they are valid in
// another process with another clock.
type Status struct {
	Output string
	Value  device.Value  // last value confirmed by the hardware; zero while unknown
	Goal   device.Value  // the target
	Safe   bool          // confirmed at its safe value
	Holder string        // "" for none
	Left   time.Duration // of the lease
	Rest   time.Duration // until its own limits permit a move
	Spare  time.Duration // how long its own limits let it stay away from safe, if it leaves it now
	MaxOn  time.Duration // Spare by max_on alone
	Duty   time.Duration // Spare by the duty alone; 0 also without one
	// Assumed is how much of the duty counts as used because the time before a start is not known.
	Assumed time.Duration
	Why     string // why it went to safe last; "" during a lease, and after a release
	Lacks   string // the unmet requirement
	Effect  Effect // of its present move, or of its last one
	Latched bool   // it had not its effect, and waits for an owner's reset
	Fault   string // why the hardware did not follow
	// Set is the value that was written last, and Measured the one that was read back since then; zero for
	// none. Both have ages. Outside of the guard's process MeasuredAge is at most too long: a value that reads
	// the same again is not told again, and the age that was told goes on.
	Set, Measured       device.Value
	SetAge, MeasuredAge time.Duration
	// State orders what is reported of its leases: of two with the same upper half, which stands for a
	// run of the guard, the higher one is later. 0 has no order.
	State int64
}

// Status reports output i. A state that differs from the one reported last in its target, its holder
// or the reason for its return to safe has a higher number.
func (m *Machine) Status(now Time, i int) Status {
	o := &m.outputs[i]
	s := Status{
		Output: o.Output, Value: o.have, Goal: o.goal, Safe: o.have == o.Safe && !o.moving,
		Holder: o.holder, Rest: o.wait(now), Why: endings[o.ended], Fault: o.fault,
		Effect: o.effect.is, Latched: m.latched(o),
	}
	s.MaxOn = max(0, o.maxOnLeft(now))
	s.Spare = s.MaxOn
	if o.duty != nil {
		s.Duty, s.Assumed = max(0, o.dutyLeft(now)), time.Duration(o.duty.assumed(now))
		s.Spare = min(s.Spare, s.Duty)
	}
	if is := (lease{o.goal, o.holder, o.ended}); is != o.numbered || o.state == 0 {
		m.last++
		o.numbered, o.state = is, m.last
	}
	s.State = o.state
	if s.Set = o.set; !s.Set.IsZero() {
		s.SetAge = now - o.setAt
	}
	if s.Measured = o.measured; !s.Measured.IsZero() {
		s.MeasuredAge = now - o.measuredAt
	}
	if o.holder != "" {
		s.Left = max(0, o.until-now)
	}
	if l := o.lacking(now); l != none {
		s.Lacks = o.Requires.String() + ": " + o.Requires.why(l, o.told)
	}
	return s
}

// Reading converts a status to a reading; an unknown value is a fault.
func (s Status) Reading() device.Reading {
	r := device.Reading{
		Point: s.Output, Value: s.Value, Quality: device.Good, At: time.Now(),
		Holder: s.Holder, Cause: cmp.Or(s.Why, s.Fault), Effect: string(s.Effect),
	}
	if s.Value.IsZero() {
		r.Quality, r.Why = device.Bad, "not known to be at its value yet"
		if s.Fault != "" {
			r.Why = s.Fault
		}
	}
	return r
}

// Status.Why after an emergency stop, and where an expected effect failed.
const (
	WhyStopped  = "everything was sent to safe"
	WhyNoEffect = "the effect that it has to have did not come"
)

// WhyEnded is Status.Fault while the process that drives an output, and whose end returned it to safe, is
// started again.
const WhyEnded = "the process that drives it has ended and is started again"

// endings are the texts of the reasons.
var endings = [...]string{
	byNobody:      "",
	byRelease:     "",
	byExpiry:      "its lease was over",
	byMaxOn:       "its max_on was spent",
	byDuty:        "its duty was spent",
	byStop:        WhyStopped,
	Silence:       "the site was not heard any more",
	Unread:        "an emergency stop could not be read",
	byFault:       "the hardware did not follow",
	byInterlock:   "another output of its interlock was not known to be safe",
	byRequirement: "what it requires was not so",
	byEffect:      WhyNoEffect,
	byPlan:        "its configuration was changed",
	byStart:       "the process that drives it was started",
}

// endingWords are the reasons in a word each, for counters.
var endingWords = [len(endings)]string{
	byNobody: "other", byRelease: "other", byExpiry: "expiry", byMaxOn: "max_on", byDuty: "duty", byStop: "stop",
	Silence: "silence", Unread: "unread_stop", byFault: "hardware", byInterlock: "interlock",
	byRequirement: "requirement", byEffect: "effect", byPlan: "configuration", byStart: "restart",
}

// Causes are the words that CauseWord returns.
func Causes() []string { return endingWords[byRelease:] }

// CauseWord returns the cause of a return to safe, as a Reading has it, in a word: one of Causes.
func CauseWord(cause string) string {
	if cause == WhyEnded {
		return endingWords[byStart]
	}
	return endingWords[max(0, slices.Index(endings[:], cause))]
}

// Limits formats the limits of a policy, except safe, range, lease and max_on, in a few words;
// "" for none.
func (p Policy) Limits() string {
	var all []string
	say := func(set bool, format string, args ...any) {
		if set {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(p.Duty.Window > 0, "at most %v in %v", device.FormatDuration(p.Duty.Away), device.FormatDuration(p.Duty.Window))
	say(p.Rate.Window > 0, "%d moves in %v", p.Rate.Moves, device.FormatDuration(p.Rate.Window))
	say(p.MinOn > 0, "keeps a value %v", device.FormatDuration(p.MinOn))
	say(p.MinOff > 0, "rests %v", device.FormatDuration(p.MinOff))
	say(p.Slew.PerSecond > 0, "%v in a second", device.Number(device.Tidy(p.Slew.PerSecond)))
	say(p.Slew.Ramp, "to safe too")
	say(p.Interlock.Group != "", "alone in %s", p.Interlock.Group)
	say(p.Requires.Point != "", "needs %v", p.Requires)
	say(p.Expects.Point != "", "expects %v", p.Expects)
	return strings.Join(all, "; ")
}

// Broke reports whether the cause of a return to safe, as a Reading has it, cut a lease short: neither
// its own length, a caller, the emergency stop nor the owner's configuration ended it.
func Broke(cause string) bool {
	for _, r := range []Reason{byNobody, byRelease, byExpiry, byStop, byPlan} {
		if cause == endings[r] {
			return false
		}
	}
	return true
}
