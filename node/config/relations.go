package config

import (
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
)

// output is a configured output with its device.
type output struct {
	pointConfig
	device  Device
	address string
}

// relations checks interlocks and requirements against the other devices, and fills in their
// defaults. It does not check points of devices that do not know them without hardware.
func (r *report) relations(devices []Device) {
	var groups []string
	members := map[string][]output{}
	for _, d := range devices {
		for _, w := range d.written {
			o := output{w, d, d.Name}
			if w.point != "" {
				o.address = device.Address(d.Name, w.point)
			}
			if w.Requires != nil {
				r.requires(o, devices)
			}
			if w.Expect != nil {
				r.expect(o, devices)
			}
			if w.Interlock != nil {
				name := string(w.Interlock.Group)
				if members[name] == nil {
					groups = append(groups, name)
				}
				members[name] = append(members[name], o)
			}
		}
	}
	for _, name := range groups {
		first := members[name][0]
		if len(members[name]) == 1 {
			r.fail(first.place("interlock"), first.address, "no other output is in the group %s; write it at the others too, or remove it", name)
		}
		for _, o := range members[name][1:] {
			if o.Interlock.Gap != first.Interlock.Gap {
				r.fail(o.place("interlock"), o.address, "the gap of %s is %v here and %v at %s (line %d); write the same at each",
					name, device.FormatDuration(o.Interlock.Gap), device.FormatDuration(first.Interlock.Gap), first.address, first.place("interlock").line)
			}
		}
	}
}

// requires checks an output's requirement and fills in its max_age.
func (r *report) requires(o output, devices []Device) {
	need := o.Requires
	of, p, at, known := r.sensor(o, "requires", need.Point, devices)
	if at == (pos{}) {
		return
	}
	aged := false
	if e, ok := find(o.entries, "requires"); ok {
		_, aged = find(e.value.entries, "max_age")
	}
	switch {
	case !aged:
		need.MaxAge = device.GoodFor(of.Every)
	case need.MaxAge < of.Every:
		r.fail(at, o.address, "%s is read every %v, so that it would nearly always be older than max_age %v; lengthen "+
			"max_age or shorten every", need.Point, device.FormatDuration(of.Every), device.FormatDuration(need.MaxAge))
	}
	switch {
	case !known:
	case p.Kind == device.KindMeasurement && (need.Within == nil || need.Is != ""):
		r.fail(at, o.address, "%s is a measurement; write within, such as within: 20..100, and no is", need.Point)
	case p.Kind == device.KindMeasurement:
	case need.Within != nil:
		r.fail(at, o.address, "%s is a state; write is, such as is: on, and no within", need.Point)
	default:
		r.state(o, at, need.Point, p, need.Is)
	}
}

// sensor finds the point that a key of an output names, with its device and the place in the file; no place where
// that is wrong, and then it has said so. known is false where the device does not know its points without
// hardware.
func (r *report) sensor(o output, key string, named address, devices []Device) (of Device, p device.Point, at pos, known bool) {
	at = o.place(key)
	if e, ok := find(o.entries, key); ok {
		if point, ok := find(e.value.entries, "point"); ok {
			at = point.value.at
		}
	}
	name, point, _ := device.SplitAddress(string(named))
	i := slices.IndexFunc(devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		var names []string
		for _, d := range devices {
			names = append(names, d.Name)
		}
		r.fail(at, o.address, "there is no device %q%s", name, device.Suggest(name, names, "device"))
		return of, p, pos{}, false
	}
	of = devices[i]
	describer, ok := of.Config.(driver.Describer)
	if !ok {
		return of, p, at, false
	}
	p, ok = describer.Describe().Point(point)
	switch {
	case !ok:
		var points []string
		for _, p := range describer.Describe().Points {
			points = append(points, p.Name)
		}
		r.fail(at, o.address, "%s has no point %q%s", name, point, device.Suggest(point, points, "point"))
	case p.Kind.Output():
		r.fail(at, o.address, "%s is an output; name what a sensor reads", named)
	case p.Kind != device.KindMeasurement && p.Kind != device.KindState:
		r.fail(at, o.address, "%s is a point of kind %s, which has no value that lasts; name a measurement or a state",
			named, p.Kind)
	default:
		return of, p, at, true
	}
	return of, p, pos{}, false
}

// state checks the value that a key of an output names for a state.
func (r *report) state(o output, at pos, point address, p device.Point, is state) {
	switch {
	case is == "":
		r.fail(at, o.address, "%s is a state; write is, such as is: on", point)
	case len(p.Values) == 0 && is.Value().Type() != device.TypeBool:
		r.fail(at, o.address, "%s is on or off, never %q", point, clip(string(is)))
	case len(p.Values) > 0 && !slices.Contains(p.Values, string(is)):
		r.fail(at, o.address, "%s is never %q%s", point, clip(string(is)), device.Suggest(string(is), p.Values, "word"))
	}
}
