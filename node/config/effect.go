package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/ucum"
)

// Expectation is the effect that an output has to have while it is away from safe.
type Expectation struct {
	Point  address       `json:"point" jsonschema:"a sensor's point, as device/point"`
	Above  *quantity     `json:"above,omitempty" jsonschema:"the least of a measurement that shows the effect, such as 0.2 or 0.2 l/min"`
	Below  *quantity     `json:"below,omitempty" jsonschema:"the most of a measurement that shows the effect"`
	Is     state         `json:"is,omitempty" jsonschema:"the value of a state that shows the effect: on, off or one of its words"`
	Within time.Duration `json:"within" jsonschema:"how long after a move, and after it was seen last, the effect may be missing, such as 5s"`
	Else   otherwise     `json:"else,omitempty" jsonschema:"what happens without it: safe, latch (safe, and no move until the owner's agentsite reset) or alarm (the output stays); safe when not written"`
}

// Range returns what of a measurement shows the effect, with an infinite end where none is written; the zero
// Range for a state.
func (x *Expectation) Range() device.Range {
	if x.Above == nil && x.Below == nil {
		return device.Range{}
	}
	r := device.Range{Min: math.Inf(-1), Max: math.Inf(1)}
	if x.Above != nil {
		r.Min = x.Above.n
	}
	if x.Below != nil {
		r.Max = x.Below.n
	}
	return r
}

// Latches reports whether the output waits for its owner after a failed effect, and Alarms whether it stays as it is.
func (x *Expectation) Latches() bool { return x.Else == elseLatch }
func (x *Expectation) Alarms() bool  { return x.Else == elseAlarm }

// quantity is a number, with its unit where that is written.
type quantity struct {
	n    float64
	unit string
}

func (q *quantity) UnmarshalText(text []byte) error {
	number, unit, spaced := strings.Cut(string(text), " ")
	n, err := parseNumber(number)
	if err != nil {
		return fmt.Errorf("takes a number, and its unit if you like, such as 0.2 l/min, not %q", clip(string(text)))
	}
	*q = quantity{n, strings.TrimSpace(unit)}
	if !spaced {
		return nil
	}
	return ucum.Check(q.unit)
}

// otherwise is the action after a failed effect.
type otherwise string

const (
	elseSafe  otherwise = "safe"
	elseLatch otherwise = "latch"
	elseAlarm otherwise = "alarm"
)

func (o *otherwise) UnmarshalText(text []byte) error {
	switch *o = otherwise(text); *o {
	case elseSafe, elseLatch, elseAlarm:
		return nil
	}
	return fmt.Errorf("takes safe, latch or alarm, not %q", clip(string(text)))
}

// expect checks an output's expectation.
func (r *report) expect(o output, devices []Device) {
	x := o.Expect
	of, p, at, known := r.sensor(o, "expect", x.Point, devices)
	switch {
	case at == (pos{}):
		return
	case x.Within <= 2*of.Every:
		r.fail(at, o.address, "%s is read every %v, and two readings show an effect: lengthen within %v to more than %v, "+
			"or shorten every", x.Point,
			device.FormatDuration(of.Every), device.FormatDuration(x.Within), device.FormatDuration(2*of.Every))
		return
	case !known:
		return
	case p.Kind == device.KindMeasurement && (x.Above == nil && x.Below == nil || x.Is != ""):
		r.fail(at, o.address, "%s is a measurement; write above or below, such as above: 0.2, and no is", x.Point)
	case p.Kind != device.KindMeasurement && (x.Above != nil || x.Below != nil):
		r.fail(at, o.address, "%s is a state; write is, such as is: on, and neither above nor below", x.Point)
	case p.Kind != device.KindMeasurement:
		r.state(o, at, x.Point, p, x.Is)
	}
	if q := o.Requires; q != nil && q.Point == x.Point && q.excludes(x) {
		r.fail(at, o.address, "requires and expect name the same point and exclude each other, so that it would always "+
			"return to safe; correct one of them")
	}
	unit := of.unitOf(p)
	for _, q := range []*quantity{x.Above, x.Below} {
		if q != nil && q.unit != "" && q.unit != unit {
			r.fail(at, o.address, "%s is in %s, not in %s; write the number in that unit", x.Point, unitText(unit), q.unit)
			return
		}
	}
}

// excludes reports whether nothing that meets the requirement shows the effect.
func (q *Requirement) excludes(x *Expectation) bool {
	if q.Within != nil && (x.Above != nil || x.Below != nil) {
		return !overlap(*q.Within, x.Range())
	}
	return q.Is != "" && x.Is != "" && q.Is.Value() != x.Is.Value()
}

// overlap reports whether a number is in both.
func overlap(a, b device.Range) bool { return max(a.Min, b.Min) <= min(a.Max, b.Max) }

// Doubts returns what may be a mistake of the devices: outputs that stay as they are where their effect fails, while
// nobody is told of it.
func (s *Site) Doubts() (doubts []error) {
	if slices.ContainsFunc(s.Agents, func(a Agent) bool { return a.Kind == Notify }) {
		return nil
	}
	for _, d := range s.Devices {
		for _, w := range d.written {
			if x := w.Expect; x != nil && x.Alarms() {
				doubts = append(doubts, d.Errorf(w.point, "expect", "%s stays as it is where its effect fails, and nobody is "+
					"told: write a notify section, or else: safe", d.Name))
			}
		}
	}
	return doubts
}

// unitOf returns the unit in which a point of the device is read.
func (d Device) unitOf(p device.Point) string {
	for _, w := range d.written {
		if w.Unit != nil && (w.point == "" || w.point == p.Name) {
			return string(*w.Unit)
		}
	}
	return p.Unit
}

// unitText is a unit as people write it.
func unitText(code string) string {
	if code == "" {
		return "no unit"
	}
	return ucum.Symbol(code)
}
