package modbus

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/driver"
)

// knownMap has the places of a product's values. Each row is in a document or program of its source that was read
// for it. None was tried on hardware.
type knownMap struct {
	name   string // as in the YAML
	model  string // for people
	hint   string // what to know before it is used
	source string // what was read: documents of the maker, and programs that drive it (mbmd is that of 2026-06-23)
	also   string // names of products, in small letters, separated by spaces
	gap    int    // registers that may be read along
	block  int    // the most registers of one request; 0 for no limit of its own
	points []point
	ids    []idCheck
}

// knownMaps returns all maps, by name.
func knownMaps() []knownMap {
	all := slices.Concat(meterMaps(), energyMaps(), moduleMaps())
	slices.SortFunc(all, func(a, b knownMap) int { return strings.Compare(a.name, b.name) })
	return all
}

// mapParts returns the names of all products.
func mapParts() []string {
	var all []string
	for _, m := range knownMaps() {
		all = append(all, strings.Fields(m.also)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mapOf returns the key of a product's map; "" for what is no product of a map.
func mapOf(product string) (key, value string) {
	for _, m := range knownMaps() {
		if slices.Contains(strings.Fields(m.also), product) {
			return "map", m.name
		}
	}
	return "", ""
}

// mapNote lists the maps for people.
func mapNote() string {
	var all []string
	for _, m := range knownMaps() {
		says := m.model
		if m.hint != "" {
			says += ": " + m.hint
		}
		all = append(all, fmt.Sprintf("%s (%s; from %s)", m.name, says, m.source))
	}
	return "On RS-485 wire A to A, B to B and ground to ground, with 120 Ω at both ends of a long line. " +
		"The maps come from what is named with each, and were not tried on hardware: " + strings.Join(all, "; ") + "."
}

// number is a measurement of a map.
func number(name string, a at, kind, unit string, low, high, scale float64) point {
	p := point{at: a, format: Format{Type: kind}, bit: -1}
	p.quantity = driver.Quantity{Unit: unit, Range: device.Range{Min: low, Max: high}, Scale: &scale}
	p.Point = driver.InputPoint{Quantity: p.quantity}.Point(name)
	return p
}

// plus sets what is added after the scale.
func (p point) plus(offset float64) point {
	p.quantity.Offset = offset
	return p
}

// order sets the order of the bytes.
func (p point) order(order string) point {
	p.format.Order = order
	return p
}

// unless sets the bits that mean not known.
func (p point) unless(raw uint64) point {
	p.unknown = &raw
	return p
}

// times sets the register of the power of ten.
func (p point) times(exponent at) point {
	p.exponent = &exponent
	return p
}

// state is a text of a map for each of the numbers from 0 on.
func state(name string, a at, values ...string) point {
	p := point{at: a, bit: -1}
	p.Point = driver.InputPoint{Values: values}.Point(name)
	return p
}

// eachPhase returns a measurement of each phase; the registers are step apart.
func eachPhase(first point, step uint16) []point { return each("_l", first, 3, step) }

// each returns several neighbours of a point, numbered from 1.
func each(mark string, first point, count, step uint16) []point {
	var all []point
	for i := range count {
		p := first
		p.Name = fmt.Sprintf("%s%s%d", first.Name, mark, i+1)
		p.at.address += i * step
		all = append(all, p)
	}
	return all
}
