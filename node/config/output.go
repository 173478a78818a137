package config

import (
	"reflect"
	"strings"
	"time"

	"agentsite/device"
)

// Output is one output of a device as its owner wants it. What is nil was not
// written, and the guard's default holds.
type Output struct {
	Point  device.Point   // with the owner's Safe and Range where they are written
	Lease  *time.Duration // the longest lease
	MaxOn  *time.Duration // continuous time away from safe, or Unlimited
	MinOff *time.Duration // rest at safe once MaxOn is spent
}

// outputPart holds the keys about one output, at a device or under points.
type outputPart struct {
	Safe   *device.Value  `json:"safe,omitempty" jsonschema:"the value that harms nobody: on, off or a number; the output rests there"`
	Range  *device.Range  `json:"range,omitempty" jsonschema:"what a level may be set to, such as 0..90, within what the device can do"`
	Lease  *time.Duration `json:"lease,omitempty" jsonschema:"the longest time that one call may hold the output away from safe; max_on when not written"`
	MaxOn  *limit         `json:"max_on,omitempty" jsonschema:"the longest time away from safe over all calls, or the word unlimited; 10m when not written"`
	MinOff *time.Duration `json:"min_off,omitempty" jsonschema:"the rest at safe once max_on is spent; 10s when not written"`
}

var outputKeys = keysOf(fieldsOf(reflect.TypeFor[outputPart]()))

// written is an outputPart and where it stands.
type written struct {
	outputPart
	point   string // "" for the device itself
	at      pos
	entries []entry
}

// place is where the key stands, else where the part begins.
func (w written) place(key string) pos {
	if e, ok := find(w.entries, key); ok {
		return e.value.at
	}
	return w.at
}

// text is what the owner wrote for the key.
func (w written) text(key string) string {
	e, _ := find(w.entries, key)
	return e.value.text
}

// output reads the keys about one output and checks what needs no description.
func (d decoder) output(point string, at pos, entries []entry) written {
	w := written{point: point, at: at, entries: entries}
	d.fields(at, "", entries, reflect.ValueOf(&w.outputPart).Elem())
	if w.Lease != nil && *w.Lease == 0 {
		d.fail(w.place("lease"), "lease must be longer than nothing, such as 1m")
	}
	if w.MaxOn != nil && *w.MaxOn == 0 {
		d.fail(w.place("max_on"), "max_on must be longer than nothing, such as 10m, or the word unlimited")
	}
	if w.Lease != nil && w.MaxOn != nil && *w.Lease > time.Duration(*w.MaxOn) {
		d.fail(w.place("lease"), "lease %s is longer than max_on %s; shorten lease or lengthen max_on", w.text("lease"), w.text("max_on"))
	}
	return w
}

// Outputs is what the owner wants of each output of desc, in its order, with what
// was not written left to the guard's defaults. It checks all that was written
// against desc; Parse has done so already where the driver is a Describer.
func (d Device) Outputs(desc device.Description) ([]Output, error) {
	r := &report{src: d.src}
	outputs := d.outputs(r, desc)
	if err := r.err(); err != nil {
		return nil, err
	}
	return outputs, nil
}

func (d Device) outputs(r *report, desc device.Description) []Output {
	parts := d.assign(r, desc)
	var outputs []Output
	for _, p := range desc.Points {
		if !p.Kind.Output() {
			continue
		}
		o := Output{Point: p}
		if w, ok := parts[p.Name]; ok {
			o = w.apply(decoder{r, device.Address(d.Name, p.Name)}, p)
		}
		outputs = append(outputs, o)
	}
	return outputs
}

// assign finds the output that each part is about.
func (d Device) assign(r *report, desc device.Description) map[string]written {
	var points, outputs []string
	for _, p := range desc.Points {
		points = append(points, p.Name)
		if p.Kind.Output() {
			outputs = append(outputs, p.Name)
		}
	}
	parts := map[string]written{}
	for _, w := range d.written {
		if w.point == "" {
			if len(w.entries) == 0 {
				continue
			}
			if len(outputs) != 1 {
				d.misplaced(r, w.entries[0], outputs)
				continue
			}
			w.point = outputs[0]
		}
		p, ok := desc.Point(w.point)
		_, twice := parts[w.point]
		switch {
		case !ok:
			r.fail(w.at, d.Name, "there is no point %q%s", w.point, suggest(w.point, points, "point"))
		case !p.Kind.Output():
			r.fail(w.at, device.Address(d.Name, w.point), "this is a %s, not an output; remove it from points, it takes none of %s", p.Kind, strings.Join(outputKeys, ", "))
		case twice:
			r.fail(w.at, device.Address(d.Name, w.point), "this output is set at the device too; write its keys in one place")
		default:
			parts[w.point] = w
		}
	}
	return parts
}

// misplaced reports a key at a device that has no output, or several.
func (d Device) misplaced(r *report, e entry, outputs []string) {
	if len(outputs) == 0 {
		r.fail(e.at, d.Name, "%s is for outputs and this device has none; remove it", e.key)
		return
	}
	r.fail(e.at, d.Name, "%s does not say which output it is for; write it under \"points:\", at %s", e.key, strings.Join(outputs, " or "))
}

// apply is p as the owner wants it.
func (w written) apply(d decoder, p device.Point) Output {
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
		d.fail(w.place("range"), "the device's own safe value %v is outside this range; add a safe value within %v", p.Safe, p.Range)
	case p.Kind == device.KindLevel && !p.Range.Contains(p.Safe.Number()):
		d.fail(w.place("safe"), "safe %v is outside the range; choose a value within %v", p.Safe, p.Range)
	}
	return Output{Point: p, Lease: w.Lease, MaxOn: (*time.Duration)(w.MaxOn), MinOff: w.MinOff}
}
