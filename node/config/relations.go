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
	at, aged := o.place("requires"), false
	if e, ok := find(o.entries, "requires"); ok {
		if point, ok := find(e.value.entries, "point"); ok {
			at = point.value.at
		}
		_, aged = find(e.value.entries, "max_age")
	}
	name, point, _ := device.SplitAddress(string(need.Point))
	i := slices.IndexFunc(devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		var names []string
		for _, d := range devices {
			names = append(names, d.Name)
		}
		r.fail(at, o.address, "there is no device %q%s", name, device.Suggest(name, names, "device"))
		return
	}
	of := devices[i]
	switch {
	case !aged:
		need.MaxAge = device.GoodFor(of.Every)
	case need.MaxAge < of.Every:
		r.fail(at, o.address, "%s is read every %v, so that it would nearly always be older than max_age %v; lengthen max_age or shorten every", need.Point, device.FormatDuration(of.Every), device.FormatDuration(need.MaxAge))
	}
	describer, ok := of.Config.(driver.Describer)
	if !ok {
		return
	}
	p, ok := describer.Describe().Point(point)
	if !ok {
		var points []string
		for _, p := range describer.Describe().Points {
			points = append(points, p.Name)
		}
		r.fail(at, o.address, "%s has no point %q%s", name, point, device.Suggest(point, points, "point"))
		return
	}
	is := need.Is.Value()
	switch {
	case p.Kind.Output():
		r.fail(at, o.address, "%s is an output; require what a sensor reads", need.Point)
	case p.Kind == device.KindMeasurement && (need.Within == nil || need.Is != ""):
		r.fail(at, o.address, "%s is a measurement; write within, such as within: 20..100, and no is", need.Point)
	case p.Kind == device.KindMeasurement:
	case p.Kind != device.KindState:
		r.fail(at, o.address, "%s is a point of kind %s, which has no value that lasts; require a measurement or a state", need.Point, p.Kind)
	case need.Is == "" || need.Within != nil:
		r.fail(at, o.address, "%s is a state; write is, such as is: on, and no within", need.Point)
	case len(p.Values) == 0 && is.Type() != device.TypeBool:
		r.fail(at, o.address, "%s is on or off, never %q", need.Point, clip(string(need.Is)))
	case len(p.Values) > 0 && !slices.Contains(p.Values, string(need.Is)):
		r.fail(at, o.address, "%s is never %q%s", need.Point, clip(string(need.Is)), device.Suggest(string(need.Is), p.Values, "word"))
	}
}
