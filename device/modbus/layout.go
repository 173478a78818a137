package modbus

import (
	"cmp"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// point is a point and where its value is.
type point struct {
	device.Point
	quantity driver.Quantity
	at       at
	format   Format
	bit      int     // of a state in a register; -1 for none
	unknown  *uint64 // the bits that stand for not known
	exponent *at     // a register with a power of ten

	output   bool
	on, off  uint64 // the bits of a switch
	back     at     // where an output is read back
	multiple bool   // it is written by function 15 or 16
}

// words returns how many coils or registers the value has.
func (p point) words() int {
	if p.at.table.bits() {
		return 1
	}
	return p.format.words()
}

// group is one request of a sample.
type group struct {
	at
	count int
}

func (g group) request() request {
	return request{function: g.table.reader(), address: g.address, count: uint16(g.count)}
}

// has reports whether g reads the places from a on.
func (g group) has(a at, words int) bool {
	return g.table == a.table && a.address >= g.address && int(a.address)+words <= int(g.address)+g.count
}

// idCheck is a number that says which device a unit is.
type idCheck struct {
	at
	format Format
	is     []uint64
}

// layout is all about a unit that is known without it.
type layout struct {
	description device.Description
	points      []point // as in description
	groups      []group
	ids         []idCheck
	dog         request // of the watchdog; none without values
	dogEvery    time.Duration
}

// layout compiles the configuration.
func (c *config) layout() (*layout, error) {
	m, err := c.known()
	if err != nil {
		return nil, err
	}
	l := &layout{description: device.Description{Model: cmp.Or(m.model, "Modbus device")}}
	used := make(map[string]bool)
	for _, name := range sortedNames(c.Outputs) {
		p, err := c.Outputs[name].point(name, m)
		if err != nil {
			return nil, err
		}
		used[c.Outputs[name].Use] = true
		l.points = append(l.points, p)
	}
	for _, name := range sortedNames(c.Inputs) {
		p, err := c.Inputs[name].point(name, m)
		if err != nil {
			return nil, err
		}
		used[c.Inputs[name].Use], used[name] = true, true
		l.points = append(l.points, p)
	}
	for _, p := range m.points {
		if !p.output && !used[p.Name] {
			l.points = append(l.points, p)
		}
	}
	switch {
	case len(l.points) == 0 && c.Map != "":
		return nil, device.Faultf(device.Invalid,
			"outputs: the map %s has no inputs; add an output, such as \"pump: { use: %s, safe: off }\"",
			c.Map, m.points[0].Name)
	case len(l.points) == 0:
		return nil, device.Faultf(device.Invalid,
			"inputs: there are no inputs and no outputs; add one, such as \"power: { input: 52, type: float32, "+
				"unit: W, range: -9000..9000 }\", or a map")
	case len(l.points) > maxPoints:
		return nil, device.Faultf(device.Invalid,
			"inputs: %d points are too many; write at most %d for one device", len(l.points), maxPoints)
	}
	for _, p := range l.points {
		l.description.Points = append(l.description.Points, p.Point)
	}
	l.groups = groupsOf(l.points, cmp.Or(c.Gap, m.gap), min(c.block(), cmp.Or(m.block, maxBlock)))
	if l.ids, err = c.idChecks(m); err != nil {
		return nil, err
	}
	return l, c.addWatchdog(l)
}

// known returns the map; an empty one without the key.
func (c *config) known() (knownMap, error) {
	if c.Map == "" {
		return knownMap{}, nil
	}
	var names []string
	for _, m := range knownMaps() {
		if m.name == c.Map {
			return m, nil
		}
		names = append(names, m.name)
	}
	return knownMap{}, device.Faultf(device.Invalid,
		"map: there is no map %.40q%s", c.Map, device.Suggest(c.Map, names, "map"))
}

// entry returns the entry of the map with that name.
func (m knownMap) entry(of, name string) (point, error) {
	var names []string
	for _, p := range m.points {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return point{}, device.Faultf(device.Invalid,
			"%s.use: it names an entry of a map, and there is no map; write map, or a place such as coil: 3", of)
	}
	return point{}, device.Faultf(device.Invalid,
		"%s.use: the map %s has no %.40q%s", of, m.name, name, device.Suggest(name, names, "name"))
}

// base returns the common part of inputs and outputs: the place and the format.
func base(of string, place Place, use string, f Format, m knownMap) (point, error) {
	a, err := place.resolve(of)
	if err != nil {
		return point{}, err
	}
	switch {
	case use != "" && (a.table != noTable || f != Format{}):
		return point{}, device.Faultf(device.Invalid,
			"%s.use: the map has its place and type; remove them here, or use", of)
	case use != "":
		return m.entry(of, use)
	case a.table == noTable:
		return point{}, device.Faultf(device.Invalid,
			"%s: it has no place; write one of coil, discrete, holding, input and register", of)
	}
	if err := f.validate(of); err != nil {
		return point{}, err
	}
	p := point{at: a, format: f, bit: -1}
	switch {
	case a.table.bits() && f != Format{}:
		return point{}, device.Faultf(device.Invalid, "%s.type: a %s is on or off; remove type and order", of, a.table)
	case int(a.address)+p.words() > 65536:
		return point{}, device.Faultf(device.Invalid,
			"%s: %v and the registers after it are beyond the last address, 65535", of, a)
	}
	return p, nil
}

func (i inputConfig) point(name string, m knownMap) (point, error) {
	of := "inputs." + name
	if err := device.CheckName(name); err != nil {
		return point{}, device.Faultf(device.Invalid, "inputs: %w", err)
	}
	p, err := base(of, i.Place, i.Use, i.Format, m)
	if err != nil {
		return point{}, err
	}
	described := i.State || len(i.Values) > 0 || i.Unit != "" || i.Range != (device.Range{}) || i.Scale != nil ||
		i.Offset != 0
	if i.Use != "" && !described { // the map describes it
		p.Name, p.Description, p.output = name, cmp.Or(i.About, p.Description), false
		return p, nil
	}
	if p.at.table.bits() && !described {
		i.State = true // it can be nothing else
	}
	if err := i.InputPoint.Validate(of); err != nil {
		return point{}, err
	}
	p.output, p.quantity = false, i.Quantity
	p.Point = i.InputPoint.Point(name)
	number := p.Kind == device.KindMeasurement
	switch {
	case p.at.table.bits() && (number || len(i.Values) > 0):
		return point{}, device.Faultf(device.Invalid,
			"%s: a %s is on or off; write state: on instead of a number or values", of, p.at.table)
	case i.Bit != nil && (!i.State || p.at.table.bits() || *i.Bit < 0 || *i.Bit >= 16*p.words()):
		return point{}, device.Faultf(device.Invalid,
			"%s.bit: it is for a state in a register, 0 to %d, with state: on", of, 16*p.words()-1)
	case !number && p.format.float():
		return point{}, device.Faultf(device.Invalid, "%s.type: a state is no %s; use uint16", of, p.format.Type)
	case i.Unknown != nil && p.at.table.bits():
		return point{}, device.Faultf(device.Invalid, "%s.unknown: a %s is on or off", of, p.at.table)
	}
	if i.Bit != nil {
		p.bit = *i.Bit
	}
	if i.Unknown != nil {
		p.unknown = i.Unknown
	}
	if i.Exponent != nil {
		a, err := i.Exponent.resolve(of + ".exponent")
		if err != nil {
			return point{}, err
		}
		if a.table == noTable || a.table.bits() || !number {
			return point{}, device.Faultf(device.Invalid,
				"%s.exponent: it is a holding or input register, and for numbers", of)
		}
		p.exponent = &a
	}
	if number && p.exponent == nil && !p.format.float() {
		if all := p.reach(); i.Range.Min > all.Max || i.Range.Max < all.Min {
			return point{}, device.Faultf(device.Invalid,
				"%s.range: %v is impossible; the registers hold %v", of, i.Range, all)
		}
	}
	return p, nil
}

// reach returns the numbers that the registers can hold.
func (p point) reach() device.Range {
	all := p.format.limits()
	low, high := p.quantity.Number(all.Min), p.quantity.Number(all.Max)
	return device.Range{Min: min(low, high), Max: max(low, high)}
}

func (o outputConfig) point(name string, m knownMap) (point, error) {
	of := "outputs." + name
	if err := device.CheckName(name); err != nil {
		return point{}, device.Faultf(device.Invalid, "outputs: %w", err)
	}
	p, err := base(of, o.Place, o.Use, o.Format, m)
	if err != nil {
		return point{}, err
	}
	if p.at.table != coils && p.at.table != holdings {
		return point{}, device.Faultf(device.Invalid,
			"%s.%s: it can only be read; an output is a coil or a holding register", of, p.at.table)
	}
	if o.Use != "" && o.Quantity == (driver.Quantity{}) {
		o.Quantity = p.quantity
	}
	if err := o.OutputPoint.Validate(of); err != nil {
		return point{}, err
	}
	p.Point, p.quantity, p.output = o.OutputPoint.Point(name), o.Quantity, true
	p.back, p.multiple = p.at, o.Multiple || p.multiple
	p.Description = cmp.Or(p.Description, p.at.String())
	if p.Kind == device.KindSwitch && (p.on == p.off || o.On != nil || o.Off != nil) {
		p.on, p.off = 1, 0
	}
	if o.On != nil {
		p.on = uint64(*o.On)
	}
	if o.Off != nil {
		p.off = uint64(*o.Off)
	}
	if o.ReadBack != nil {
		if p.back, err = o.ReadBack.resolve(of + ".read_back"); err != nil {
			return point{}, err
		}
	}
	all := p.reach()
	switch {
	case p.back.table.bits() != p.at.table.bits() || p.back.table == noTable:
		return point{}, device.Faultf(device.Invalid,
			"%s.read_back: what is written to a %s is not read from there; write a register for a register, and "+
				"a coil or discrete for a coil", of, p.at.table)
	case p.at.table == coils && p.Kind != device.KindSwitch:
		return point{}, device.Faultf(device.Invalid,
			"%s: a coil is on or off; remove unit, range, scale and offset", of)
	case p.at.table == coils && (o.On != nil || o.Off != nil):
		return point{}, device.Faultf(device.Invalid, "%s: value_on and value_off are of a holding register", of)
	case p.Kind == device.KindSwitch && (p.words() != 1 || p.on == p.off):
		return point{}, device.Faultf(device.Invalid,
			"%s: a switch is in one register, with different numbers for on and off", of)
	case p.Kind == device.KindLevel && (o.On != nil || o.Off != nil):
		return point{}, device.Faultf(device.Invalid,
			"%s: value_on and value_off are of a switch; remove them, or unit and range", of)
	case p.Kind == device.KindLevel && (p.Range.Min < all.Min || p.Range.Max > all.Max):
		return point{}, device.Faultf(device.Invalid,
			"%s.range: %v is wider than what the registers hold, %v; check scale and type", of, p.Range, all)
	}
	return p, nil
}

func (c *config) idChecks(m knownMap) ([]idCheck, error) {
	all := slices.Clone(m.ids)
	for _, i := range c.ID {
		a, err := i.resolve("id")
		if err == nil {
			err = i.Format.validate("id")
		}
		switch {
		case err != nil:
			return nil, err
		case a.table == noTable || a.table.bits() || i.float() || len(i.Is) == 0:
			return nil, device.Faultf(device.Invalid,
				"id: write a holding or input register with a whole number, and what it is, such as { holding: "+
					"0, is: [42] }")
		}
		all = append(all, idCheck{a, i.Format, i.Is})
	}
	if len(all) > 8 {
		return nil, device.Faultf(device.Invalid, "id: %d are too many; write at most 8", len(all))
	}
	return all, nil
}

func (c *config) addWatchdog(l *layout) error {
	w := c.Watchdog
	if w == nil {
		return nil
	}
	a, err := w.Place.resolve("watchdog")
	every := cmp.Or(w.Every, time.Second)
	switch {
	case err != nil:
		return err
	case a.table != coils && a.table != holdings || a.table == coils && w.Value > 1:
		return device.Faultf(device.Invalid, "watchdog: it is a holding register, or a coil with the value 0 or 1")
	case every < time.Second || every > time.Minute:
		return device.Faultf(device.Invalid, "watchdog.every: %v is not 1s to 1m", every)
	case len(c.Outputs) == 0:
		return device.Faultf(device.Invalid,
			"watchdog: it is written while an output is away from safe, and there is no output")
	}
	l.dog, l.dogEvery = writeOf(a, []uint16{w.Value}, false), every
	return nil
}

// writeOf returns the request that writes registers or a coil.
func writeOf(a at, values []uint16, multiple bool) request {
	r := request{address: a.address, count: uint16(len(values)), values: values}
	multiple = multiple || len(values) > 1
	switch {
	case a.table == coils && multiple:
		r.function = writeCoils
	case a.table == coils:
		r.function = writeCoil
	case multiple:
		r.function = writeHoldings
	default:
		r.function = writeHolding
	}
	return r
}

// groupsOf joins neighbouring places into as few requests as gap and block allow. A number is never divided.
func groupsOf(points []point, gap, block int) []group {
	var spans []group
	for _, p := range points {
		a := p.at
		if p.output {
			a = p.back
		}
		spans = append(spans, group{a, p.words()})
		if p.exponent != nil {
			spans = append(spans, group{*p.exponent, 1})
		}
	}
	slices.SortFunc(spans, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.address, b.address))
	})
	var all []group
	for _, s := range spans {
		if len(all) > 0 {
			last := &all[len(all)-1]
			end := max(int(last.address)+last.count, int(s.address)+s.count)
			most := max(block, 4)
			if s.table.bits() {
				most *= 16
			}
			near := int(s.address) <= int(last.address)+last.count+gap
			if last.table == s.table && near && end-int(last.address) <= most {
				last.count = end - int(last.address)
				continue
			}
		}
		all = append(all, s)
	}
	return all
}
