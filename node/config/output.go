package config

import (
	"reflect"
	"time"

	"agentsite/device"
)

// Output is an output with its configuration. For a nil field the guard's default
// holds.
type Output struct {
	Point  device.Point   // with the file's Safe and Range where they are written
	Lease  *time.Duration // the longest lease
	MaxOn  *time.Duration // continuous time away from safe, or Unlimited
	MinOn  *time.Duration // for which a value away from safe is kept
	MinOff *time.Duration // rest at safe before each move, and once MaxOn is spent
	Duty   *Duty
	Rate   *Rate
	Slew   *Slew
	Ramp   bool // return to safe by Slew
	// Interlock, Requires and Expect are checked against the other devices, as far as those know their
	// points without hardware.
	Interlock *Interlock
	Requires  *Requirement
	Expect    *Expectation
	Confirm   bool // an owner approves each move away from safe
}

// outputPart has the keys about an output, at a device or under points.
type outputPart struct {
	Safe   *device.Value  `json:"safe,omitempty" jsonschema:"the value that harms nobody: on, off or a number; the output rests there"`
	Range  *device.Range  `json:"range,omitempty" jsonschema:"what a level may be set to, such as 0..90, within what the device can do"`
	Lease  *time.Duration `json:"lease,omitempty" jsonschema:"the longest time that one call may hold the output away from safe; max_on when not written"`
	MaxOn  *limit         `json:"max_on,omitempty" jsonschema:"the longest time away from safe over all calls, or the word unlimited; 10m when not written"`
	MinOn  *time.Duration `json:"min_on,omitempty" jsonschema:"a value away from safe is kept for so long before another; it does not delay a return to safe"`
	MinOff *time.Duration `json:"min_off,omitempty" jsonschema:"the rest at safe before each move away; when not written, 10s and only once max_on is spent"`
	Duty   *Duty          `json:"duty,omitempty" jsonschema:"the time away from safe in any stretch of time, such as 20m/1h"`
	Rate   *Rate          `json:"rate,omitempty" jsonschema:"the moves away from safe in any stretch of time, over all callers, such as 20/1h"`
	Slew   *Slew          `json:"slew,omitempty" jsonschema:"how fast a level moves away from safe, such as 45/s; it returns to safe at once"`
	Ramp   bool           `json:"ramp_to_safe,omitempty" jsonschema:"on where a sudden return to safe would do harm: it then takes the time of slew"`

	Interlock *Interlock   `json:"interlock,omitempty" jsonschema:"a group of outputs of which one at most is away from safe"`
	Requires  *Requirement `json:"requires,omitempty" jsonschema:"a point that has to be well for the output to be away from safe"`
	Expect    *Expectation `json:"expect,omitempty" jsonschema:"what a sensor has to show while the output is away from safe: that it really happens"`
	Confirm   confirmer    `json:"confirm,omitempty" jsonschema:"owner: each move away from safe waits for the owner's agentsite approve"`
}

var outputKeys = keysOf(reflect.TypeFor[outputPart]())

// output checks what needs no description of the device.
func (d decoder) output(w pointConfig) {
	if w.Lease != nil && *w.Lease == 0 {
		d.fail(w.place("lease"), "lease must be longer than 0, such as 1m")
	}
	if w.MaxOn != nil && *w.MaxOn == 0 {
		d.fail(w.place("max_on"), "max_on must be longer than 0, such as 10m, or the word unlimited")
	}
	if w.Lease != nil && w.MaxOn != nil && *w.Lease > time.Duration(*w.MaxOn) {
		d.fail(w.place("lease"), "lease %s is longer than max_on %s; shorten lease or lengthen max_on",
			w.text("lease"), w.text("max_on"))
	}
}

// asOutput applies w to p, and checks it against p.
func (w pointConfig) asOutput(d decoder, p device.Point) Output {
	if w.Range != nil {
		switch {
		case p.Kind != device.KindLevel:
			d.fail(w.place("range"), "this is a switch, on or off; it takes no range, so remove it")
		case !p.Range.Contains(w.Range.Min) || !p.Range.Contains(w.Range.Max):
			d.fail(w.place("range"), "range %v reaches outside what the device can do; stay within %v", *w.Range, p.Range)
		default:
			p.Range = *w.Range
		}
	}
	if w.Safe != nil {
		p.Safe = *w.Safe
	}
	switch {
	case p.Kind == device.KindSwitch && p.Safe.Type() != device.TypeBool:
		d.fail(w.place("safe"), "safe of a switch is on or off, not %v", p.Safe)
	case p.Kind == device.KindLevel && p.Safe.Type() != device.TypeNumber:
		d.fail(w.place("safe"), "safe of a level is a number within %v, not %v", p.Range, p.Safe)
	case p.Kind == device.KindLevel && !p.Range.Contains(p.Safe.Number()) && w.Safe == nil:
		d.fail(w.place("range"), "the device's own safe value %v is outside this range; add a safe value within %v",
			p.Safe, p.Range)
	case p.Kind == device.KindLevel && !p.Range.Contains(p.Safe.Number()):
		d.fail(w.place("safe"), "safe %v is outside the range; choose a value within %v", p.Safe, p.Range)
	}
	return Output{
		Point: p, Lease: w.Lease, MaxOn: (*time.Duration)(w.MaxOn), MinOn: w.MinOn, MinOff: w.MinOff,
		Duty: w.Duty, Rate: w.Rate, Slew: w.Slew, Ramp: w.Ramp,
		Interlock: w.Interlock, Requires: w.Requires, Expect: w.Expect, Confirm: w.Confirm != "",
	}
}
