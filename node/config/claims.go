package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/driver"
)

// firstUse is a resource and the first device that needs it.
type firstUse struct {
	driver.Resource
	by Device
}

// claims reports devices that claim the same thing, such as a line of the board, and outputs of one device that do.
func (r *report) claims(devices []Device) {
	taken := map[string]firstUse{}
	for _, d := range devices {
		user, ok := d.Config.(driver.ResourceUser)
		if !ok {
			continue
		}
		for _, c := range user.Resources() {
			first, clash := taken[c.Name]
			switch {
			case c.Name == "": // of an invalid pin
			case !clash:
				taken[c.Name] = firstUse{c, d}
			case first.Shared != "" && first.Shared == c.Shared:
			case first.by.Name == d.Name && (first.Shared != "" || c.Shared != "" || d.mistaken()):
			default:
				r.clash(d, c, taken)
			}
		}
	}
}

// mistaken reports whether the driver itself finds a mistake.
func (d Device) mistaken() bool {
	v, ok := d.Config.(driver.Validator)
	return ok && v.Validate() != nil
}

// shareProcess sets BesideOutputs of the devices.
func shareProcess(devices []Device) {
	outputs := map[string]bool{} // by the name of the part
	each := func(do func(d *Device, part string)) {
		for i := range devices {
			if user, ok := devices[i].Config.(driver.ResourceUser); ok {
				for _, c := range user.Resources() {
					if c.OneProcess {
						do(&devices[i], c.Name)
					}
				}
			}
		}
	}
	each(func(d *Device, part string) {
		desc, ok := d.Config.(driver.Describer)
		if ok && slices.ContainsFunc(desc.Describe().Points, func(p device.Point) bool { return p.Kind.Output() }) {
			outputs[part] = true
		}
	})
	each(func(d *Device, part string) { d.BesideOutputs = d.BesideOutputs || outputs[part] })
}

// clash reports that another device has what d claims, at the key that claims it.
func (r *report) clash(d Device, c driver.Resource, taken map[string]firstUse) {
	first := taken[c.Name]
	at, by, line := d.claimedAt(c), first.by.Name, first.by.at.line
	switch {
	case by == d.Name:
		r.fail(at, d.Name, "two of its points need %s; remove one of them", c.Name)
	case first.OneProcess && c.OneProcess:
		r.fail(at, d.Name, "%s has one setting for all: %s, for %s (line %d); write the same for %s", c.Name, first.Shared,
			by, line, d.Name)
	case first.Shared != "":
		r.fail(at, d.Name, "%s is taken by %s, which %s (line %d) needs; choose another for %s", c.Name, first.Shared, by, line, d.Name)
	case c.Shared != "":
		r.fail(at, d.Name, "%s needs %s, which %s (line %d) has; choose another for %s", c.Shared, c.Name, by, line, by)
	default:
		r.fail(at, d.Name, "%s is already taken by %s (line %d); it can have only one owner%s",
			c.Name, by, line, d.otherAddress(c, taken))
	}
}

// otherAddress returns the hint for a chip whose address another has, where it can have a free one.
func (d Device) otherAddress(c driver.Resource, taken map[string]firstUse) string {
	chip, ok := d.Config.(interface{ Addresses() []uint16 })
	bus, _, onBus := strings.Cut(c.Name, "/")
	if !ok || !onBus {
		return ""
	}
	for _, a := range chip.Addresses() {
		if _, used := taken[fmt.Sprintf("%s/%#02x", bus, a)]; !used {
			return fmt.Sprintf("; set %s to another address on its board, and write it, such as address: %#02x", d.Name, a)
		}
	}
	return ""
}

// claimedAt returns where the file makes a claim: the place of its value ("0x76" of
// "i2c-1/0x76"), or else of a key that usually has such values.
func (d Device) claimedAt(c driver.Resource) pos {
	for _, e := range d.entries {
		if text := e.value.text; e.value.shape == scalar && text != "" && (text == c.Shared || strings.HasSuffix("/"+c.Name, "/"+text)) {
			return e.value.at
		}
	}
	config := reflect.Indirect(reflect.ValueOf(d.Config))
	for _, f := range fieldsOf(config.Type()) { // a value that its driver converted, such as a line of the board
		if v := config.FieldByIndex(f.index); v.Kind() == reflect.String && v.String() == c.Name {
			if e, ok := find(d.entries, f.key); ok {
				return e.value.at
			}
		}
	}
	for _, key := range []string{"pin", "address", "bus", "port"} {
		if e, ok := find(d.entries, key); ok {
			return e.value.at
		}
	}
	return d.at
}
