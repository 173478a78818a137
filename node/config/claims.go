package config

import (
	"reflect"
	"strings"

	"agentsite/device/driver"
)

// firstClaim is a claim and the first device that makes it.
type firstClaim struct {
	driver.Claim
	by Device
}

// claims reports devices that claim the same thing, such as a line of the board.
func (r *report) claims(devices []Device) {
	taken := map[string]firstClaim{}
	for _, d := range devices {
		claimer, ok := d.Config.(driver.Claimer)
		if !ok {
			continue
		}
		for _, c := range claimer.Claims() {
			first, clash := taken[c.What]
			switch {
			case c.What == "": // of an invalid pin
			case !clash:
				taken[c.What] = firstClaim{c, d}
			case first.by.Name == d.Name, first.With != "" && first.With == c.With:
			default:
				r.clash(d, c, first)
			}
		}
	}
}

// clash reports that another device has what d claims, at the key that claims it.
func (r *report) clash(d Device, c driver.Claim, first firstClaim) {
	at, by, line := d.claimedAt(c), first.by.Name, first.by.at.line
	switch {
	case first.With != "":
		r.fail(at, d.Name, "%s is taken by %s, which %s (line %d) needs; choose another for %s", c.What, first.With, by, line, d.Name)
	case c.With != "":
		r.fail(at, d.Name, "%s needs %s, which %s (line %d) has; choose another for %s", c.With, c.What, by, line, by)
	default:
		r.fail(at, d.Name, "%s is already taken by %s (line %d); it can have only one owner", c.What, by, line)
	}
}

// claimedAt returns where the file makes a claim: the place of its value ("0x76" of
// "i2c-1/0x76"), or else of a key that usually has such values.
func (d Device) claimedAt(c driver.Claim) pos {
	for _, e := range d.entries {
		if text := e.value.text; e.value.shape == scalar && text != "" && (text == c.With || strings.HasSuffix("/"+c.What, "/"+text)) {
			return e.value.at
		}
	}
	config := reflect.Indirect(reflect.ValueOf(d.Config))
	for _, f := range fieldsOf(config.Type()) { // a value that its driver converted, such as a line of the board
		if v := config.FieldByIndex(f.index); v.Kind() == reflect.String && v.String() == c.What {
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
