package guard

import (
	"math"
	"time"

	"agentsite/device"
)

const (
	// DefaultFor is the length of a lease when the caller names none.
	DefaultFor = 60 * time.Second
	// DefaultMaxOn bounds the continuous time away from safe unless the owner's
	// YAML says otherwise.
	DefaultMaxOn = 10 * time.Minute
	// DefaultRest is the rest at safe after max_on was spent.
	DefaultRest = 10 * time.Second
	// MaxRamp bounds a ramp to safe: the emergency stop and the end of the process
	// wait for it.
	MaxRamp = 4 * time.Second
	// Unlimited is max_on as the owner has to write it out.
	Unlimited = time.Duration(math.MaxInt64)
)

const (
	shortestWindow = time.Second
	longestWindow  = 366 * 24 * time.Hour
	mostMoves      = 1_000_000
)

// Policy is what the owner allows one output to do. Nothing in it delays a return to
// safe, but for Ramp where its owner has said so.
type Policy struct {
	Output string // address, device/point
	Kind   device.Kind
	Range  device.Range // of a level
	Safe   device.Value
	Lease  time.Duration // the longest lease; MaxOn when zero
	MaxOn  time.Duration // time away from safe without a rest, over all values and holders
	// Rest at safe is forced after a start and once MaxOn is spent, and makes all of
	// MaxOn available again.
	Rest time.Duration
	// MinOff is a rest at safe that every move away has to wait for. An owner who
	// writes min_off means both: it is Rest too.
	MinOff time.Duration
	// MinOn keeps an output from chattering: a value away from safe is kept for so long
	// before the next may be asked for, be it after a return to safe, and no lease is
	// shorter. Whatever returns an output to safe does not wait for it.
	MinOn     time.Duration
	Duty      Duty // the time away in any window
	Rate      Rate // the moves away from safe in any window, over all callers
	Slew      Slew // how fast a level goes; at once when zero
	Interlock Interlock
	Requires  Requirement
}

// Duty bounds the time away from safe within any Window; a zero Window is no bound.
type Duty struct{ Away, Window time.Duration }

// Rate bounds the moves within any Window; a zero Window is no bound. A move is a
// value away from safe other than the last; a renewal and a return to safe are none.
type Rate struct {
	Moves  int
	Window time.Duration
}

// Slew bounds how fast a level moves away from safe and among values away from it. It
// goes back to safe at once, unless a ramp is the safe way: then for whatever reason
// it returns, the emergency stop too, but not once the hardware has failed.
type Slew struct {
	PerSecond float64
	Ramp      bool
}

// Interlock is a group of outputs of which at most one is away from safe. It leaves
// only when all others have been known to be safe for the gap. "" is no group.
type Interlock struct {
	Group string
	Gap   time.Duration
}

// Requirement is a point that has to be well for an output to be away from safe: read
// no longer than MaxAge ago, and Within, or Is where that is not zero. It is no
// requirement when Point is "".
type Requirement struct {
	Point  string // address
	Within device.Range
	Is     device.Value
	MaxAge time.Duration
}

// NewPolicy is the policy of an output whose owner wrote nothing.
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

// Mistake is the first contradiction, and the key of the configuration that is to
// blame for it.
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

// Check reports whether the output can take the value at all.
func (p Policy) Check(v device.Value) error {
	return device.Point{Name: p.Output, Kind: p.Kind, Range: p.Range}.Accepts(v)
}

// Longest is the longest lease that a caller may ask for.
func (p Policy) Longest() time.Duration {
	if p.Lease > 0 {
		return p.Lease
	}
	return p.MaxOn
}
