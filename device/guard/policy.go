package guard

import (
	"math"
	"time"

	"agentsite/device"
)

const (
	// DefaultFor is the default length of a lease.
	DefaultFor = 60 * time.Second
	// DefaultMaxOn is the default of max_on.
	DefaultMaxOn = 10 * time.Minute
	// DefaultRest is the rest at safe after max_on was spent.
	DefaultRest = 10 * time.Second
	// MaxRamp limits a ramp to safe, because the emergency stop and the end of the process
	// wait for it.
	MaxRamp = 4 * time.Second
	// Unlimited is max_on: unlimited, which the owner must write explicitly.
	Unlimited = time.Duration(math.MaxInt64)
)

const (
	shortestWindow = time.Second
	longestWindow  = 366 * 24 * time.Hour
	mostMoves      = 1_000_000
)

// Policy is the set of limits of one output. Only Slew.Ramp delays a return to safe.
type Policy struct {
	Output string // address, device/point
	Kind   device.Kind
	Range  device.Range // of a level
	Safe   device.Value
	Lease  time.Duration // the longest lease; MaxOn when zero
	MaxOn  time.Duration // time away from safe without a rest, over all values and holders
	// Rest is the forced time at safe after a start and once MaxOn is spent. It restores
	// MaxOn completely.
	Rest time.Duration
	// MinOff is the rest at safe before every move away. min_off in the configuration sets
	// both MinOff and Rest.
	MinOff time.Duration
	// MinOn prevents chattering. It is the minimum time of a value away from safe before the next
	// one, even after a return to safe, and the minimum lease. A return to safe does not wait for
	// it.
	MinOn     time.Duration
	Duty      Duty // the time away in any window
	Rate      Rate // the moves away from safe in any window, over all callers
	Slew      Slew // speed of a level; at once when zero
	Interlock Interlock
	Requires  Requirement
	Expects   Expectation
}

// Duty limits the time away from safe within any Window; a zero Window is no limit.
type Duty struct{ Away, Window time.Duration }

// Rate limits the moves within any Window; a zero Window is no limit. A move is a value away
// from safe that differs from the last one; a renewal or a return to safe does not count.
type Rate struct {
	Moves  int
	Window time.Duration
}

// Slew limits the speed of a level away from safe and between values. It returns to safe at
// once, or with Ramp by a ramp for every reason, including the emergency stop, except after
// a hardware failure.
type Slew struct {
	PerSecond float64
	Ramp      bool
}

// Interlock is a group in which at most one output is away from safe. An output leaves safe
// only after all others were confirmed as safe for the gap. "" is no group.
type Interlock struct {
	Group string
	Gap   time.Duration
}

// Requirement is a condition for an output to be away from safe. The point's reading is not older
// than MaxAge and is Within, or equals Is if that is not zero. Without a Point there is no
// requirement.
type Requirement struct {
	Point  string // address
	Within device.Range
	Is     device.Value
	MaxAge time.Duration
}

// NewPolicy returns the default policy of an output.
func NewPolicy(deviceName string, p device.Point) Policy {
	return Policy{
		Output: device.Address(deviceName, p.Name), Kind: p.Kind, Range: p.Range, Safe: p.Safe,
		MaxOn: DefaultMaxOn, Rest: DefaultRest,
	}
}

// Validate reports the first contradiction.
func (p Policy) Validate() error {
	_, err := p.Mistake()
	return err
}

// Mistake returns the first contradiction, and its key in the configuration.
func (p Policy) Mistake() (key string, err error) {
	wrong := func(k, format string, args ...any) {
		if err == nil {
			key, err = k, device.Faultf(device.Invalid, p.Output+": "+format, args...)
		}
	}
	if !p.Kind.Output() {
		wrong("safe", "this is a %s, not an output: it takes no safe, lease or max_on", p.Kind)
	}
	if bad := p.Check(p.Safe); bad != nil {
		wrong("safe", "the safe value is not one that it can take: %w", bad)
	}
	if p.MaxOn <= 0 {
		wrong("max_on", "max_on must be longer than nothing, or the word unlimited")
	}
	if p.Lease < 0 {
		wrong("lease", "lease must be longer than nothing")
	}
	if p.Lease > p.MaxOn {
		wrong("lease", "lease %v is longer than max_on %v; shorten lease or lengthen max_on", p.Lease, p.MaxOn)
	}
	if p.MinOff < 0 || p.Rest < 0 {
		wrong("min_off", "min_off cannot be negative")
	}
	if p.MinOn < 0 {
		wrong("min_on", "min_on cannot be negative")
	}
	if p.MinOn > p.MaxOn {
		wrong("min_on", "min_on %v is longer than max_on %v; shorten min_on or lengthen max_on", p.MinOn, p.MaxOn)
	}
	if p.MinOn > p.Longest() {
		wrong("min_on", "min_on %v is longer than lease %v, so that nobody could ask for it; shorten min_on or lengthen lease", p.MinOn, p.Lease)
	}
	p.windows(wrong)
	p.slewing(wrong)
	if p.Interlock.Gap < 0 {
		wrong("interlock", "the gap of an interlock cannot be negative")
	}
	p.requirement(wrong)
	p.expectation(wrong)
	return key, err
}

func (p Policy) windows(wrong func(key, format string, args ...any)) {
	if d := p.Duty; d != (Duty{}) {
		checkWindow("duty", "20m/1h", d.Window, wrong)
		if d.Away <= 0 {
			wrong("duty", "duty leaves no time away from safe; write a time in a period, such as 20m/1h")
		}
		if d.Away >= d.Window {
			wrong("duty", "duty %v in %v is no bound; write less than the whole, or remove it", d.Away, d.Window)
		}
		if d.Away < p.MinOn {
			wrong("duty", "duty leaves %v, less than min_on %v; lengthen duty or shorten min_on", d.Away, p.MinOn)
		}
	}
	if r := p.Rate; r != (Rate{}) {
		checkWindow("rate", "20/1h", r.Window, wrong)
		if r.Moves <= 0 {
			wrong("rate", "rate permits no move; write a number in a period, such as 20/1h")
		}
		if r.Moves > mostMoves {
			wrong("rate", "rate takes at most %d moves", mostMoves)
		}
	}
}

func checkWindow(key, such string, w time.Duration, wrong func(key, format string, args ...any)) {
	if w < shortestWindow || w > longestWindow {
		wrong(key, "%s is in a window of %v to %v, such as %s", key, shortestWindow, longestWindow, such)
	}
}

func (p Policy) slewing(wrong func(key, format string, args ...any)) {
	s := p.Slew
	switch {
	case s == Slew{}:
	case p.Kind != device.KindLevel:
		wrong("slew", "slew is for levels; a switch is on or off, so remove it")
	case s.PerSecond == 0:
		wrong("ramp_to_safe", "ramp_to_safe needs a slew, such as slew: 45/s")
	case !(s.PerSecond > 0) || math.IsInf(s.PerSecond, 0):
		wrong("slew", "slew is a number above 0 per time, such as 45/s")
	case !(s.PerSecond*maxStep.Seconds() >= (p.Range.Max-p.Range.Min)/steps):
		wrong("slew", "slew is so slow that the whole of %v takes longer than a day; make it faster", p.Range)
	case s.Ramp && p.ramp() > MaxRamp:
		wrong("ramp_to_safe", "a ramp to safe over all of %v takes %v at this slew; nothing waits longer than %v for safe, so make slew faster or remove ramp_to_safe",
			p.Range, p.ramp(), MaxRamp)
	case s.Ramp && p.ramp()+p.MinOn >= p.MaxOn:
		wrong("ramp_to_safe", "the ramp to safe takes %v and with min_on all of max_on %v; lengthen max_on", p.ramp(), p.MaxOn)
	case s.Ramp && p.Duty.Window > 0 && p.ramp()+p.MinOn >= p.Duty.Away:
		wrong("ramp_to_safe", "the ramp to safe takes %v and with min_on all of the duty; lengthen duty", p.ramp())
	}
}

func (p Policy) requirement(wrong func(key, format string, args ...any)) {
	r := p.Requires
	switch {
	case r == Requirement{}:
	case r.Point == "":
		wrong("requires", "requires names no point")
	case r.Point == p.Output:
		wrong("requires", "an output cannot require itself; name the point of a sensor")
	case r.MaxAge <= 0:
		wrong("requires", "requires needs a max_age that is longer than nothing, such as 30s")
	case r.Is.IsZero() == (r.Within == device.Range{}):
		wrong("requires", "requires needs either within, such as 20..100, or is, such as on")
	case r.Is.IsZero() && !(r.Within.Min < r.Within.Max):
		wrong("requires", "within %v holds nothing; write the smaller number first", r.Within)
	}
}

func (p Policy) expectation(wrong func(key, format string, args ...any)) {
	x := p.Expects
	switch {
	case x == Expectation{}:
	case x.Point == "":
		wrong("expect", "expect names no point")
	case x.Point == p.Output:
		wrong("expect", "an output is no effect of itself; name the point of a sensor")
	case x.By <= 0:
		wrong("expect", "expect needs a within that is longer than nothing, such as 5s")
	case x.By >= p.MaxOn:
		wrong("expect", "within %v is not shorter than max_on %v, so that it would never be decided", x.By, p.MaxOn)
	case x.Is.IsZero() == (x.Within == device.Range{}):
		wrong("expect", "expect needs either above or below, such as above: 0.2, or is, such as on")
	case x.Is.IsZero() && !(x.Within.Min <= x.Within.Max):
		wrong("expect", "nothing is above %v and below %v", x.Within.Min, x.Within.Max)
	case x.Else > ElseAlarm:
		wrong("expect", "else is safe, latch or alarm")
	}
}

// Check refuses a value that the output cannot have.
func (p Policy) Check(v device.Value) error {
	return device.Point{Name: p.Output, Kind: p.Kind, Range: p.Range}.Accepts(v)
}

// Longest returns the longest lease of one call.
func (p Policy) Longest() time.Duration {
	if p.Lease > 0 {
		return p.Lease
	}
	return p.MaxOn
}

// Usual returns the length of a lease for which none is given: DefaultFor, or min_on where that is
// longer, within the longest lease.
func (p Policy) Usual() time.Duration {
	usual := max(DefaultFor, p.MinOn)
	if longest := p.Longest(); longest > 0 {
		usual = min(usual, longest)
	}
	return usual
}
