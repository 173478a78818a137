package config

import (
	"math"
	"reflect"

	"agentsite/device"
)

// Measurement is one measurement as its owner wants to read it.
type Measurement struct {
	Point device.Point // with the owner's Unit, and the Range that follows

	scale, offset float64
	clamp         *device.Range
}

// measurementPart holds the keys about one measurement, at a device or under
// points.
type measurementPart struct {
	Scale  *float64      `json:"scale,omitempty" jsonschema:"a measurement is multiplied by this; 1 when not written"`
	Offset *float64      `json:"offset,omitempty" jsonschema:"then this is added; 0 when not written"`
	Clamp  *device.Range `json:"clamp,omitempty" jsonschema:"then what is outside is taken for the nearest end, such as 0..100"`
	Unit   *unit         `json:"unit,omitempty" jsonschema:"what it is then in, as UCUM writes it: Cel, %, Pa, lx, V; the device's own when not written"`
}

var measurementKeys = keysOf(fieldsOf(reflect.TypeFor[measurementPart]()))

// unit is text that looks like a UCUM code.
type unit string

func (u *unit) UnmarshalText(text []byte) error {
	*u = unit(text)
	return device.CheckUnit(string(text))
}

// measurement checks what needs no description.
func (d decoder) measurement(w written) {
	if w.Scale != nil && *w.Scale == 0 {
		d.fail(w.place("scale"), "scale 0 would make one value of all; write what to multiply by, such as 0.5")
	}
}

// asMeasurement is p as the owner wants it.
func (w written) asMeasurement(d decoder, p device.Point) Measurement {
	m := Measurement{Point: p, scale: 1, clamp: w.Clamp}
	if w.Scale != nil {
		m.scale = *w.Scale
	}
	if w.Offset != nil {
		m.offset = *w.Offset
	}
	if w.Unit != nil {
		m.Point.Unit = string(*w.Unit)
	}
	if p.Range == (device.Range{}) { // the device does not say what it can read
		if w.Clamp != nil {
			m.Point.Range = *w.Clamp
		}
		return m
	}
	low, high := m.scaled(p.Range.Min), m.scaled(p.Range.Max)
	r := device.Range{Min: min(low, high), Max: max(low, high)}
	if math.IsInf(r.Max-r.Min, 0) || math.IsNaN(r.Max-r.Min) {
		d.fail(w.at, "scale and offset lead from %v to numbers that are too large; mend them", p.Range)
		return m
	}
	if w.Clamp != nil {
		if r.Max <= w.Clamp.Min || r.Min >= w.Clamp.Max {
			d.fail(w.place("clamp"), "clamp %v leaves nothing of what can be read, %v after scale and offset; mend one of them", *w.Clamp, r)
			return m
		}
		r = device.Range{Min: max(r.Min, w.Clamp.Min), Max: min(r.Max, w.Clamp.Max)}
	}
	m.Point.Range = r
	return m
}

// scaled is tidied, because 0.1 times 3 is not what an owner calls 0.30000000000000004.
func (m Measurement) scaled(n float64) float64 { return device.Tidy(n*m.scale + m.offset) }

// Convert makes what the owner reads of what the device measured: times scale,
// plus offset, and within clamp. A number that is none stays so.
func (m Measurement) Convert(n float64) float64 {
	if m.clamp == nil || math.IsInf(n, 0) {
		return m.scaled(n)
	}
	return max(m.clamp.Min, min(m.scaled(n), m.clamp.Max)) // a NaN stays one
}
