package driver

import (
	"maps"
	"math"
	"slices"

	"agentsite/device"
	"agentsite/device/ucum"
)

// Quantity is the YAML of a number that the owner of a device describes: in a register of a chip or of
// Modbus, in a message or a document, or at a node elsewhere. The point's number is scale × raw + offset.
type Quantity struct {
	Unit   string       `json:"unit,omitempty" jsonschema:"the unit as UCUM writes it: Cel, %, Pa, lx, V, A"`
	Range  device.Range `json:"range,omitempty" jsonschema:"what the number can be, in the unit, such as -40..125; anything else is a fault"`
	Scale  *float64     `json:"scale,omitempty" jsonschema:"what the raw number is multiplied by; 1 when not written"`
	Offset float64      `json:"offset,omitempty" jsonschema:"what is added then"`
	About  string       `json:"about,omitempty" jsonschema:"one line about it"`
}

// Validate finds mistakes; of names the point in its fault. The range is required.
func (q Quantity) Validate(of string) error {
	switch {
	case !(q.Range.Min < q.Range.Max):
		return device.Faultf(device.Invalid,
			"%s.range: %v is empty; write what the number can be, the smaller one first, such as -40..125", of, q.Range)
	case q.Scale != nil && (*q.Scale == 0 || !(math.Abs(*q.Scale) <= 1e12)) || !(math.Abs(q.Offset) <= 1e12):
		return device.Faultf(device.Invalid, "%s.scale: %v times the number plus %v is implausible", of, q.scale(), q.Offset)
	}
	if err := ucum.Check(q.Unit); err != nil {
		return device.Faultf(device.Invalid, "%s.unit: %w", of, err)
	}
	return q.validateAbout(of)
}

func (q Quantity) validateAbout(of string) error {
	if len(q.About) > 120 {
		return device.Faultf(device.Invalid, "%s.about: it has %d letters; write at most 120", of, len(q.About))
	}
	return nil
}

// Number returns the point's number of a raw one.
func (q Quantity) Number(raw float64) float64 { return device.Tidy(raw*q.scale() + q.Offset) }

// Raw is the reverse of Number.
func (q Quantity) Raw(n float64) float64 { return (n - q.Offset) / q.scale() }

func (q Quantity) scale() float64 {
	if q.Scale == nil {
		return 1
	}
	return *q.Scale
}

// number reports whether one of the keys of a number is written.
func (q Quantity) number() bool {
	return q.Unit != "" || q.Range != (device.Range{}) || q.Scale != nil || q.Offset != 0
}

// Points returns the points of a device whose owner describes them: the outputs and then the inputs, by name.
func Points[O, I interface {
	Point(name string) device.Point
}](outputs map[string]O, inputs map[string]I) []device.Point {
	var all []device.Point
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		all = append(all, outputs[name].Point(name))
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		all = append(all, inputs[name].Point(name))
	}
	return all
}

// InputPoint is the YAML of a point that is only read: a number, or with state or values a state.
type InputPoint struct {
	Quantity
	State  bool     `json:"state,omitempty" jsonschema:"on if it is on or off instead of a number"`
	Values []string `json:"values,omitempty" jsonschema:"the texts that it can be instead of a number, such as [idle, heating]"`
}

// Validate finds mistakes; of names the point in its fault.
func (i InputPoint) Validate(of string) error {
	switch {
	case i.State && len(i.Values) > 0:
		return device.Faultf(device.Invalid, "%s.values: it is on or off by state; remove one of the two", of)
	case i.isState() && i.number():
		return device.Faultf(device.Invalid,
			"%s: a state is no number; remove unit, range, scale and offset, or state and values", of)
	case len(i.Values) > 64:
		return device.Faultf(device.Invalid, "%s.values: %d are too many; write at most 64", of, len(i.Values))
	case i.isState():
		return i.validateAbout(of)
	}
	return i.Quantity.Validate(of)
}

func (i InputPoint) isState() bool { return i.State || len(i.Values) > 0 }

// Point returns the point with that name.
func (i InputPoint) Point(name string) device.Point {
	p := device.Point{Name: name, Kind: device.KindMeasurement, Unit: i.Unit, Range: i.Range, Description: i.About}
	if i.isState() {
		p.Kind, p.Values = device.KindState, i.Values
	}
	return p
}

// OutputPoint is the YAML of an output: a switch, or with a range a level.
type OutputPoint struct {
	Quantity
	Safe device.Value `json:"safe" jsonschema:"the value that harms nobody: off, on or a number of its range"`
}

// Validate finds mistakes; of names the point in its fault.
func (o OutputPoint) Validate(of string) error {
	switch {
	case o.number():
		if err := o.Quantity.Validate(of); err != nil {
			return err
		}
	default:
		if err := o.validateAbout(of); err != nil {
			return err
		}
	}
	if err := o.Point(of).Accepts(o.Safe); err != nil {
		return device.Faultf(device.Invalid, "%s.safe: %w", of, err)
	}
	return nil
}

// Point returns the output with that name.
func (o OutputPoint) Point(name string) device.Point {
	p := device.Point{Name: name, Kind: device.KindSwitch, Description: o.About, Safe: o.Safe}
	if o.number() {
		p.Kind, p.Unit, p.Range = device.KindLevel, o.Unit, o.Range
	}
	return p
}
