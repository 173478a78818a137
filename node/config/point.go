package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"agentsite/device"
)

// Points is a device's description with the configuration of its points.
type Points struct {
	// Description is the device's own, with the file's safe values, ranges and units.
	Description  device.Description
	Outputs      []Output      // all of them, in the order of the description
	Measurements []Measurement // those with a conversion
}

// pointPart has the keys about a point, at a device or under points.
type pointPart struct {
	namePart
	outputPart
	measurementPart
}

// namePart has the key of any point, under points.
type namePart struct {
	Name title `json:"name,omitempty" jsonschema:"what people call the point, such as Pump of the north bed; at most 64 characters"`
}

// title is a name for people.
type title string

// UnmarshalText refuses what is empty, too long, or has a control character or one that changes the
// direction of text.
func (t *title) UnmarshalText(text []byte) error {
	*t = title(text)
	if n := utf8.RuneCount(text); n == 0 || n > 64 || !printable(string(text)) {
		return errors.New("name takes 1 to 64 printable characters")
	}
	return nil
}

var nameKeys = keysOf(reflect.TypeFor[namePart]())

var pointKeys = keysOf(reflect.TypeFor[pointPart]())

// pointConfig is a pointPart and where it stands.
type pointConfig struct {
	pointPart
	point   string // "" for the device itself
	at      pos
	entries []entry
}

// place returns the place of the key's value, or else of the part.
func (w pointConfig) place(key string) pos {
	if e, ok := find(w.entries, key); ok {
		return e.value.at
	}
	return w.at
}

// text returns the key's value as written.
func (w pointConfig) text(key string) string {
	e, _ := find(w.entries, key)
	return e.value.text
}

// point decodes the keys about a point and checks what needs no description of the device.
func (d decoder) point(name string, at pos, entries []entry) pointConfig {
	w := pointConfig{point: name, at: at, entries: entries}
	d.fields(at, "", entries, reflect.ValueOf(&w.pointPart).Elem())
	d.output(w)
	d.measurement(w)
	return w
}

// Points applies the file to desc, and checks it against desc; Parse has done so already where
// the driver is a Describer.
func (d Device) Points(desc device.Description) (Points, error) {
	r := &report{src: d.src}
	points := d.points(r, desc)
	if err := r.err(); err != nil {
		return Points{}, err
	}
	return points, nil
}

func (d Device) points(r *report, desc device.Description) Points {
	parts := d.assign(r, desc)
	all := Points{Description: desc}
	all.Description.Points = slices.Clone(desc.Points)
	for i, p := range desc.Points {
		w, ok := parts[p.Name]
		p.Title = string(w.Name)
		all.Description.Points[i] = p
		at := decoder{report: r, where: device.Address(d.Name, p.Name)}
		switch {
		case p.Kind.Output():
			o := Output{Point: p}
			if ok {
				o = w.asOutput(at, p)
				if w.Safe != nil && has(reflect.TypeOf(d.Config), "safe") {
					at.fail(w.place("safe"), "this driver has a key safe of its own; write it there and remove it here")
				}
			}
			all.Outputs = append(all.Outputs, o)
			all.Description.Points[i] = o.Point
		case ok && p.Kind == device.KindMeasurement:
			m := w.asMeasurement(at, p)
			all.Measurements = append(all.Measurements, m)
			all.Description.Points[i] = m.Point
		}
	}
	return all
}

// has reports whether a driver's keys, or those below them, include key.
func has(t reflect.Type, key string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return slices.ContainsFunc(fieldsOf(t), func(f field) bool {
		return f.key == key || has(t.FieldByIndex(f.index).Type, key)
	})
}

// keySet is a set of keys and the points that take them.
type keySet struct {
	what   string
	keys   []string
	takes  func(device.Kind) bool
	points []string // of the device
}

func keysFor(desc device.Description) []keySet {
	all := []keySet{
		{what: "output", keys: slices.Concat(nameKeys, outputKeys), takes: device.Kind.Output},
		{what: "measurement", keys: slices.Concat(nameKeys, measurementKeys), takes: func(k device.Kind) bool {
			return k == device.KindMeasurement
		}},
		{what: "point", keys: nameKeys, takes: func(k device.Kind) bool {
			return !k.Output() && k != device.KindMeasurement
		}},
	}
	for i := range all {
		for _, p := range desc.Points {
			if all[i].takes(p.Kind) {
				all[i].points = append(all[i].points, p.Name)
			}
		}
	}
	return all
}

// assign returns the parts by the points that they are about.
func (d Device) assign(r *report, desc device.Description) map[string]pointConfig {
	sets := keysFor(desc)
	parts := map[string]pointConfig{}
	for _, w := range d.written {
		if w.point != "" {
			d.put(r, parts, w, desc, sets)
			continue
		}
		if e, ok := find(w.entries, "name"); ok && len(desc.Points) != 1 {
			r.fail(e.at, d.Name, "name does not say which point it is for; write it under \"points:\"")
			continue
		}
		// Keys at the device are about its only output or its only measurement, and a name about its only point.
		for _, set := range sets {
			part := w
			part.entries = only(w.entries, set.keys...)
			switch {
			case len(part.entries) == 0, len(set.points) == 0 && len(only(part.entries, nameKeys...)) == len(part.entries):
			case len(set.points) != 1:
				d.misplaced(r, part.entries[0], set)
			default:
				part.point = set.points[0]
				parts[part.point] = part
			}
		}
	}
	return parts
}

// put adds a part under points, where it fits its point.
func (d Device) put(r *report, parts map[string]pointConfig, w pointConfig, desc device.Description, sets []keySet) {
	p, ok := desc.Point(w.point)
	if !ok {
		var points []string
		for _, p := range desc.Points {
			points = append(points, p.Name)
		}
		r.fail(w.at, d.Name, "there is no point %q%s", w.point, device.Suggest(w.point, points, "point"))
		return
	}
	at := device.Address(d.Name, w.point)
	if _, twice := parts[w.point]; twice {
		r.fail(w.at, at, "this %s is set at the device too; write its keys in one place", p.Kind)
		return
	}
	i := slices.IndexFunc(sets, func(s keySet) bool { return s.takes(p.Kind) })
	for _, e := range w.entries {
		if !slices.Contains(sets[i].keys, e.key) {
			r.fail(e.at, at, "%s is not for a %s, which takes %s; remove it", e.key, p.Kind, strings.Join(sets[i].keys, ", "))
			return
		}
	}
	parts[w.point] = w
}

// misplaced reports a key at a device that has no point for it, or several.
func (d Device) misplaced(r *report, e entry, set keySet) {
	if len(set.points) == 0 {
		r.fail(e.at, d.Name, "%s is for %ss and this device has none; remove it", e.key, set.what)
		return
	}
	r.fail(e.at, d.Name, "%s does not say which %s it is for; write it under \"points:\", at %s",
		e.key, set.what, strings.Join(set.points, " or "))
}
