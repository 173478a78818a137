package esphome

import (
	"strings"
	"unicode"

	"agentsite/device"
	"agentsite/device/driver"
)

// fits are the kinds of entities that a kind of point can be of.
var fits = map[device.Kind]func(k *kind) bool{
	device.KindMeasurement: func(k *kind) bool { return k.number != 0 },
	device.KindState:       func(k *kind) bool { return k.on != 0 || k.opens() },
	device.KindSwitch:      func(k *kind) bool { return k.command != 0 && (k.on != 0 || k.opens()) },
	device.KindLevel:       func(k *kind) bool { return k.command != 0 && k.number != 0 },
}

func (p *point) validate() error {
	if err := device.CheckName(p.Name); err != nil {
		return device.Faultf(device.Invalid, "%s: %w", p.key, err)
	}
	k := p.kinded()
	if k == nil {
		return device.Faultf(device.Invalid, "%s.entity: %.60q is none; write its kind and object ID, such as "+
			"sensor/temperature; the kinds are %s", p.key, p.entity, kindNames())
	}
	var err error
	if p.output {
		err = driver.OutputPoint{Quantity: p.Quantity, Safe: p.Safe}.Validate(p.key)
	} else {
		state := p.Kind == device.KindState && p.Values == nil
		err = driver.InputPoint{Quantity: p.Quantity, State: state, Values: p.Values}.Validate(p.key)
	}
	if err != nil {
		return err
	}
	fit := fits[p.Kind]
	if len(p.Values) > 0 {
		fit = func(k *kind) bool { return k.text != 0 }
	}
	switch {
	case !fit(k) && p.output && k.command == 0:
		return device.Faultf(device.Invalid, "%s.entity: a %s moves nothing; write it under inputs", p.key, k.name)
	case !fit(k) && k.text != 0:
		return device.Faultf(device.Invalid, "%s.entity: a %s is a text; write values with all that it can be", p.key, k.name)
	case !fit(k) && k.number != 0:
		return device.Faultf(device.Invalid, "%s.entity: a %s is a number; write its range and unit", p.key, k.name)
	case !fit(k):
		return device.Faultf(device.Invalid, "%s.entity: a %s is on or off; remove range and unit, and write state: on for "+
			"an input", p.key, k.name)
	case p.nodeUnit != "" && !p.scaled():
		return device.Faultf(device.Invalid, "%s.node_unit: it is needed with scale or offset only; remove it", p.key)
	}
	if raw := p.raw(); k.proportional() && p.numeric() && (raw.Min < 0 || raw.Max > 100) {
		return device.Faultf(device.Invalid, "%s.range: a %s has 0 to 100 %%; write unit: \"%%\" and a range within 0..100",
			p.key, k.name)
	}
	return nil
}

func (p *point) numeric() bool { return p.Kind == device.KindMeasurement || p.Kind == device.KindLevel }

// raw returns the range in the node's unit.
func (p *point) raw() device.Range {
	a, b := device.Tidy(p.Quantity.Raw(p.Point.Range.Min)), device.Tidy(p.Quantity.Raw(p.Point.Range.Max))
	return device.Range{Min: min(a, b), Max: max(a, b)}
}

func kindNames() (names string) {
	for i, k := range kinds {
		if i > 0 {
			names += ", "
		}
		names += k.name
	}
	return names
}

// learn notes the point's entity, or why it cannot be it.
func (p *point) learn(e *entity) {
	if p.is != nil {
		p.lacks = "the node has " + p.entity + " on two of its devices; give one of them another name"
		return
	}
	p.is, p.lacks = e, ""
	code, known := unitOf(e.unit)
	raw := p.raw()
	switch {
	case e.kind.unit == 0:
	case p.scaled() && p.nodeUnit != e.unit:
		p.lacks = "the node sends it in " + quote(e.unit) + "; write node_unit with that, if scale and offset are of it"
	case !p.scaled() && e.unit != "" && (!known || code != p.Point.Unit):
		p.lacks = "the node sends it in " + quote(e.unit) + ", not in " + quote(p.Point.Unit)
		if known {
			p.lacks += "; write unit: " + quote(code)
		} else {
			p.lacks += "; write node_unit, scale and the unit that results"
		}
	}
	switch {
	case p.lacks != "" || !p.output || p.Kind != device.KindLevel:
	case e.kind.proportional() && !e.levels:
		p.lacks = "at the node it has no levels; write it as a switch, without range and unit"
	case e.kind.min != 0 && (raw.Min < e.min || raw.Max > e.max):
		is := device.Range{Min: e.min, Max: e.max}
		p.lacks = "at the node it can be " + is.String() + "; write a range within"
	}
}

// quote returns a text of a node for a sentence: only of a short word the letters, as driver.QuoteWord, but also those
// of units.
func quote(text string) string {
	if len(text) > maxUnit || strings.ContainsFunc(text, unicode.IsSpace) {
		return driver.QuoteWord(text)
	}
	return `"` + plain(text) + `"`
}

// plain returns text of a node without what is no printable letter.
func plain(text string) string {
	out := []rune(device.Clip(text, 60))
	for i, r := range out {
		if !unicode.IsPrint(r) || r == '"' || r == '\\' {
			out[i] = '_'
		}
	}
	return string(out)
}
