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
	// DefaultMinOff is the rest at safe after max_on was spent.
	DefaultMinOff = 10 * time.Second
	// Unlimited is max_on as the owner has to write it out.
	Unlimited = time.Duration(math.MaxInt64)
)

// Policy is what the owner allows one output to do.
type Policy struct {
	Output string // address, device/point
	Kind   device.Kind
	Range  device.Range // of a level
	Safe   device.Value
	Lease  time.Duration // the longest lease; MaxOn when zero
	MaxOn  time.Duration // time away from safe without a rest of MinOff, over all values and holders
	MinOff time.Duration // the rest at safe that makes MaxOn available again; forced once it is spent
}

// NewPolicy is the policy of an output whose owner wrote nothing.
func NewPolicy(deviceName string, p device.Point) Policy {
	return Policy{
		Output: device.Address(deviceName, p.Name), Kind: p.Kind, Range: p.Range, Safe: p.Safe,
		MaxOn: DefaultMaxOn, MinOff: DefaultMinOff,
	}
}

// Validate reports the first contradiction.
func (p Policy) Validate() error {
	switch {
	case !p.Kind.Output():
		return device.Faultf(device.Invalid, "%s is a %s, not an output: it takes no safe, lease or max_on", p.Output, p.Kind)
	case p.MaxOn <= 0:
		return device.Faultf(device.Invalid, "%s: max_on must be longer than nothing, or the word unlimited", p.Output)
	case p.Lease < 0:
		return device.Faultf(device.Invalid, "%s: lease must be longer than nothing", p.Output)
	case p.Lease > p.MaxOn:
		return device.Faultf(device.Invalid, "%s: lease %v is longer than max_on %v", p.Output, p.Lease, p.MaxOn)
	case p.MinOff < 0:
		return device.Faultf(device.Invalid, "%s: min_off cannot be negative", p.Output)
	}
	if err := p.Check(p.Safe); err != nil {
		return device.Faultf(device.Invalid, "%s: the safe value is not one that it can take: %w", p.Output, err)
	}
	return nil
}

// Check reports whether the output can take the value at all.
func (p Policy) Check(v device.Value) error {
	if p.Kind == device.KindSwitch {
		if v.Type() != device.TypeBool {
			return device.Faultf(device.Invalid, "%s is a switch: say true or false", p.Output)
		}
		return nil
	}
	if v.Type() != device.TypeNumber || !v.Finite() {
		return device.Faultf(device.Invalid, "%s takes a number within %s", p.Output, p.Range)
	}
	if !p.Range.Contains(v.Number()) {
		return device.Faultf(device.Invalid, "%s takes %s; %v is outside", p.Output, p.Range, v)
	}
	return nil
}

// Longest is the longest lease that a caller may ask for.
func (p Policy) Longest() time.Duration {
	if p.Lease > 0 {
		return p.Lease
	}
	return p.MaxOn
}
