package config

import (
	"math"
	"reflect"

	"agentsite/device"
	"agentsite/device/ucum"
)

// Measurement is a measurement with its configured conversion.
type Measurement struct {
	Point device.Point // with the file's Unit, and the converted Range

	scale, offset float64
	clamp         *device.Range
}

// measurementPart has the keys about a measurement, at a device or under points.
type measurementPart struct {
	Scale  *float64      `json:"scale,omitempty" jsonschema:"a measurement is multiplied by this; 1 when not written"`
	Offset *float64      `json:"offset,omitempty" jsonschema:"then this is added; 0 when not written"`
	Clamp  *device.Range `json:"clamp,omitempty" jsonschema:"then what is outside is taken for the nearest end, such as 0..100"`
	Unit   *unit         `json:"unit,omitempty" jsonschema:"what it is then in, as UCUM writes it: Cel, %, Pa, lx, V; the device's own when not written"`
}

var measurementKeys = keysOf(reflect.TypeFor[measurementPart]())

// unit is a UCUM code.
type unit string

func (u *unit) UnmarshalText(text []byte) error {
	*u = unit(text)
	return ucum.Check(string(text))
}

// measurement checks what needs no description of the device.
func (d decoder) measurement(w pointConfig) {
	if w.Scale != nil && *w.Scale == 0 {
		d.fail(w.place("scale"), "scale 0 would make all values equal; write a factor such as 0.5")
	}
}

// asMeasurement applies w to p.
func (w pointConfig) asMeasurement(d decoder, p device.Point) Measurement {
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
	if p.Range == (device.Range{}) { // the device does not know its range
		if w.Clamp != nil {
			m.Point.Range = *w.Clamp
		}
		return m
	}
	low, high := m.scaled(p.Range.Min), m.scaled(p.Range.Max)
	r := device.Range{Min: min(low, high), Max: max(low, high)}
	if math.IsInf(r.Max-r.Min, 0) || math.IsNaN(r.Max-r.Min) {
		d.fail(w.at, "scale and offset convert %v to numbers that are too large; change them", p.Range)
		return m
	}
	if w.Clamp != nil {
		if r.Max <= w.Clamp.Min || r.Min >= w.Clamp.Max {
			d.fail(w.place("clamp"), "clamp %v leaves nothing of the range, %v after scale and offset; change one of them",
				*w.Clamp, r)
			return m
		}
		r = device.Range{Min: max(r.Min, w.Clamp.Min), Max: min(r.Max, w.Clamp.Max)}
	}
	m.Point.Range = r
	return m
}

// scaled returns n times scale plus offset, rounded so that 0.1 times 3 is 0.3.
func (m Measurement) scaled(n float64) float64 { return device.Tidy(n*m.scale + m.offset) }

// Convert converts a measured value: times scale, plus offset, within clamp. NaN and
// Inf stay.
func (m Measurement) Convert(n float64) float64 {
	if m.clamp == nil || math.IsInf(n, 0) {
		return m.scaled(n)
	}
	return max(m.clamp.Min, min(m.scaled(n), m.clamp.Max)) // NaN stays
}

// Raw returns a measured value that Convert converts to n, if clamp lets it.
func (m Measurement) Raw(n float64) float64 { return device.Tidy((n - m.offset) / m.scale) }
