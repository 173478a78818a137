package guard

import (
	"fmt"
	"time"

	"agentsite/device"
)

// lack is the reason why a requirement is not met.
type lack uint8

const (
	unread lack = iota // no reading yet
	none
	bad
	outside
	stale
)

// Told processes a reading of a point: whether it is good, its value and its age. Outputs
// whose requirement is not met go to safe, and those whose effect has failed. An older reading does not
// replace a newer one.
func (m *Machine) Told(now Time, point string, good bool, v device.Value, age time.Duration) {
	for i := range m.outputs {
		o := &m.outputs[i]
		if o.Expects.Point == point && point != "" {
			m.sees(now, o, good, v, age)
		}
		if o.Requires.Point != point || point == "" {
			continue
		}
		fresh := add(now, o.Requires.MaxAge-max(0, min(age, o.Requires.MaxAge)))
		if fresh < o.fresh {
			continue
		}
		o.told, o.fresh = v, fresh
		switch {
		case !good:
			o.lacks = bad
		case !shows(v, o.Requires.Within, o.Requires.Is):
			o.lacks = outside
		default:
			o.lacks = none
		}
		o.required(now)
	}
}

// Requires reports whether any output requires the point, or expects something of it.
func (m *Machine) Requires(point string) bool {
	for i := range m.outputs {
		if o := &m.outputs[i]; point != "" && (o.Requires.Point == point || o.Expects.Point == point) {
			return true
		}
	}
	return false
}

// lacking returns why the output's requirement is not met at now.
func (o *output) lacking(now Time) lack {
	switch {
	case o.Requires.Point == "":
		return none
	case o.lacks == none && now >= o.fresh:
		return stale
	}
	return o.lacks
}

// required reports whether the output's requirement is met, and returns the output to safe
// if not.
func (o *output) required(now Time) bool {
	o.lacks = o.lacking(now)
	if o.lacks != none {
		o.toSafe(byRequirement)
	}
	return o.lacks == none
}

// String formats a requirement: "tank/level within 20..100".
func (r Requirement) String() string {
	switch {
	case r.Point == "":
		return ""
	case !r.Is.IsZero():
		return r.Point + " " + r.Is.String()
	}
	return r.Point + " within " + r.Within.String()
}

// why formats a lack as the end of a sentence.
func (r Requirement) why(l lack, told device.Value) string {
	switch l {
	case bad:
		return "it cannot be read"
	case outside:
		return "it was " + told.String()
	case stale:
		return fmt.Sprintf("it had not been read for %v", device.FormatDuration(r.MaxAge))
	}
	return "it has not been read yet"
}
