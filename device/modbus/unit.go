package modbus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// unitDevice is one unit on a bus.
type unitDevice struct {
	*layout
	id      byte
	timeout time.Duration
	bus     *bus

	moving device.Mutex // held by Apply and Close

	mu      sync.Mutex // guards the fields below
	outputs map[string]*setting
	known   bool // it is the device of the ids
	closed  bool
	fed     time.Time // when the watchdog was written
}

// setting is the last value of an output.
type setting struct {
	number    int // of the Apply; a sample that began before an Apply knows nothing about it
	confirmed bool
	raw       uint64
	value     device.Value
	at        time.Time
}

func newUnitDevice(l *layout, id byte, timeout time.Duration, b *bus) *unitDevice {
	d := &unitDevice{layout: l, id: id, timeout: timeout, bus: b, moving: device.NewMutex()}
	d.outputs = make(map[string]*setting)
	for _, p := range l.points {
		if p.output {
			raw, _ := p.encode(p.Safe)
			d.outputs[p.Name] = &setting{raw: raw, value: p.Safe}
		}
	}
	return d
}

// Describe is constant.
func (d *unitDevice) Describe() device.Description { return d.description }

// do makes one request.
func (d *unitDevice) do(ctx context.Context, r request, urgent bool) ([]uint16, error) {
	values, err := d.bus.do(ctx, call{r, d.id, d.timeout, urgent})
	if err != nil && !errors.As(err, new(exceptionError)) {
		d.mu.Lock()
		d.known = false // another device may be there the next time
		d.mu.Unlock()
	}
	return values, err
}

// probe finds out whether the unit is there, and the one that it should be.
func (d *unitDevice) probe(ctx context.Context) error {
	urgent := len(d.outputs) > 0
	if len(d.ids) > 0 {
		return d.identify(ctx, urgent)
	}
	_, err := d.do(ctx, d.groups[0].request(), urgent)
	if errors.As(err, new(exceptionError)) { // it answers, and a sample says what is wrong
		return nil
	}
	return err
}

// identify checks the ids, once as long as the unit answers.
func (d *unitDevice) identify(ctx context.Context, urgent bool) error {
	d.mu.Lock()
	known, closed := d.known, d.closed
	d.mu.Unlock()
	if closed {
		return device.Faultf(device.Offline, "the device is closed")
	}
	if known {
		return nil
	}
	for _, id := range d.ids {
		values, err := d.do(ctx, group{id.at, id.format.words()}.request(), urgent)
		if err != nil {
			return d.explain(err, group{id.at, id.format.words()})
		}
		if is := id.format.raw(values); !slices.Contains(id.is, is) {
			return device.Faultf(device.Offline,
				"unit %d on %s is another device: its %v has %d (%#x), not what its map or id says; check "+
					"unit_id and the map", d.id, d.bus.name, id.at, is, is)
		}
	}
	d.mu.Lock()
	d.known = true
	d.mu.Unlock()
	return nil
}

// explain returns the fault of a request about some places.
func (d *unitDevice) explain(err error, g group) error {
	if errors.As(err, new(exceptionError)) {
		return device.Faultf(device.Offline,
			"unit %d on %s refuses %v (%d of them): %w; check the map, and the addresses, which count from 0",
			d.id, d.bus.name, g.at, g.count, err)
	}
	return err
}

// answer is the answer to one request of a sample.
type answer struct {
	values []uint16
	at     time.Time
	err    error
}

// Sample reads all points, each group in one request.
func (d *unitDevice) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := d.identify(ctx, false); err != nil {
		return nil, err
	}
	if err := d.feed(ctx, false); err != nil {
		return nil, err
	}
	begun := d.settings()
	answers := make([]answer, len(d.groups))
	for i, g := range d.groups {
		values, err := d.do(ctx, g.request(), false)
		if err != nil && !errors.As(err, new(exceptionError)) {
			return nil, err
		}
		answers[i] = answer{values, time.Now(), d.explain(err, g)}
	}
	readings := make([]device.Reading, len(d.points))
	for i, p := range d.points {
		readings[i] = d.reading(p, answers, begun[p.Name])
	}
	return readings, nil
}

// settings returns a copy of what the outputs were set to.
func (d *unitDevice) settings() map[string]setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]setting, len(d.outputs))
	for name, s := range d.outputs {
		all[name] = *s
	}
	return all
}

func (d *unitDevice) setting(name string) setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.outputs[name]
}

// find returns the registers of a place from the answers.
func (d *unitDevice) find(answers []answer, a at, words int) (values []uint16, at time.Time, err error) {
	for i, g := range d.groups {
		if g.has(a, words) {
			from := int(a.address) - int(g.address)
			if answers[i].err != nil {
				return nil, answers[i].at, answers[i].err
			}
			return answers[i].values[from : from+words], answers[i].at, nil
		}
	}
	return nil, time.Now(), errors.New("it was not read")
}

// reading returns the reading of one point. begun is the setting of an output when the sample began.
func (d *unitDevice) reading(p point, answers []answer, begun setting) device.Reading {
	a := p.at
	if p.output {
		a = p.back
	}
	values, at, err := d.find(answers, a, p.words())
	bad := func(why string) device.Reading {
		return device.Reading{Point: p.Name, Quality: device.Bad, At: at, Why: why}
	}
	if err != nil {
		return bad(err.Error())
	}
	if p.output {
		now := d.setting(p.Name)
		switch {
		case now.number == begun.number: // what was read is what is
		case now.confirmed:
			return device.Reading{Point: p.Name, Value: now.value, Quality: device.Good, At: now.at}
		default:
			return bad("it is being moved")
		}
		v, err := p.decode(values, now)
		if err != nil {
			return bad(err.Error())
		}
		return device.Reading{Point: p.Name, Value: v, Quality: device.Good, At: at}
	}
	power := 0.0
	if p.exponent != nil {
		words, _, err := d.find(answers, *p.exponent, 1)
		if err != nil {
			return bad(err.Error())
		}
		if power = float64(int16(words[0])); math.Abs(power) > 10 { // SunSpec allows -10 to 10
			return bad(fmt.Sprintf("its scale factor in %v is not known", *p.exponent))
		}
	}
	r := p.input(values, power)
	r.At = at
	return r
}

// input returns the reading of an input.
func (p point) input(values []uint16, power float64) device.Reading {
	s := driver.NewSample([]device.Point{p.Point})
	raw := p.raw(values)
	switch {
	case p.unknown != nil && raw == *p.unknown:
		s.Fault("the device does not know it")
	case len(p.Values) > 0 && raw < uint64(len(p.Values)):
		s.Value(device.Text(p.Values[raw]))
	case len(p.Values) > 0:
		s.Fault(fmt.Sprintf("it reads %d, and values has only 0 to %d", raw, len(p.Values)-1))
	case p.bit >= 0:
		s.Value(device.Bool(raw>>p.bit&1 != 0))
	case p.Kind == device.KindState && raw <= 1:
		s.Value(device.Bool(raw == 1))
	case p.Kind == device.KindState:
		s.Fault(fmt.Sprintf("it reads %d, which is neither 0 for off nor 1 for on; write the bit", raw))
	default:
		s.Separate(p.quantity.Number(p.format.number(raw)*math.Pow(10, power)), 0)
	}
	return s.Readings()[0]
}

// raw returns the bits of the value in coils or registers.
func (p point) raw(values []uint16) uint64 {
	if p.at.table.bits() {
		return uint64(values[0])
	}
	return p.format.raw(values)
}

// decode returns the value of an output: exactly the set one while the device has what was written.
func (p point) decode(values []uint16, set setting) (device.Value, error) {
	raw := p.raw(values)
	switch {
	case raw == set.raw:
		return set.value, nil
	case p.Kind == device.KindSwitch && raw == p.on:
		return device.Bool(true), nil
	case p.Kind == device.KindSwitch && raw == p.off:
		return device.Bool(false), nil
	case p.Kind == device.KindSwitch:
		return device.Value{}, device.Faultf(device.Offline,
			"it reads %d, which is neither on (%d) nor off (%d)", raw, p.on, p.off)
	}
	v := device.Number(p.quantity.Number(p.format.number(raw)))
	if err := p.Accepts(v); err != nil {
		return device.Value{}, device.Faultf(device.Offline,
			"it reads %v, which this site does not set; another program may be writing it", v)
	}
	return v, nil
}

// encode returns the bits of a value that p accepts: those of the nearest number in the range.
func (p point) encode(v device.Value) (uint64, error) {
	if p.Kind == device.KindSwitch {
		if v.Bool() {
			return p.on, nil
		}
		return p.off, nil
	}
	raw := p.quantity.Raw(v.Number())
	if p.format.float() {
		return p.format.bits(raw), nil
	}
	for _, n := range []float64{math.Round(raw), math.Floor(raw), math.Ceil(raw)} {
		if p.Range.Contains(p.quantity.Number(n)) && p.format.limits().Contains(n) {
			return p.format.bits(n), nil
		}
	}
	return 0, device.Faultf(device.Invalid, "%s cannot be set to %v: its steps are larger than its range", p.Name, v)
}

// Apply writes an output and reads it back.
func (d *unitDevice) Apply(ctx context.Context, name string, v device.Value) error {
	if err := d.moving.LockContext(ctx); err != nil {
		return err
	}
	defer d.moving.Unlock()
	i := slices.IndexFunc(d.points, func(p point) bool { return p.output && p.Name == name })
	if i < 0 {
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", name)
	}
	p := d.points[i]
	if err := p.Accepts(v); err != nil {
		return err
	}
	return d.apply(ctx, p, v)
}

// apply moves an output. The caller holds moving.
func (d *unitDevice) apply(ctx context.Context, p point, v device.Value) error {
	raw, err := p.encode(v)
	if err != nil {
		return err
	}
	if err := d.identify(ctx, true); err != nil {
		return err
	}
	d.mu.Lock()
	s := d.outputs[p.Name]
	s.number, s.confirmed, s.raw, s.value = s.number+1, false, raw, v
	d.mu.Unlock()
	if v != p.Safe { // nothing comes before a return to safe
		if err := d.feed(ctx, true); err != nil {
			return err
		}
	}
	values := []uint16{uint16(raw)}
	if p.at.table == holdings {
		values = p.format.registers(raw)
	}
	if _, err := d.do(ctx, writeOf(p.at, values, p.multiple), true); err != nil {
		return d.explain(err, group{p.at, len(values)})
	}
	back := group{p.back, p.words()}
	values, err = d.do(ctx, back.request(), true)
	if err != nil {
		return d.explain(err, back)
	}
	if is := p.raw(values); is != raw {
		return device.Faultf(device.Offline,
			"%s was set to %v, and %v has %d instead of %d; look whether another master or the device's own "+
				"panel sets it", p.Name, v, p.back, is, raw)
	}
	d.mu.Lock()
	s.confirmed, s.at = true, time.Now()
	d.mu.Unlock()
	return nil
}

// feed writes the watchdog's register if that is due: while an output is, or may be, away from safe.
func (d *unitDevice) feed(ctx context.Context, urgent bool) error {
	if d.dog.values == nil {
		return nil
	}
	d.mu.Lock()
	due := time.Since(d.fed) >= d.dogEvery
	if due {
		due = false
		for _, p := range d.points {
			if s := d.outputs[p.Name]; p.output && s.number > 0 && (s.value != p.Safe || !s.confirmed) {
				due = true
			}
		}
	}
	d.mu.Unlock()
	if !due {
		return nil
	}
	if _, err := d.do(ctx, d.dog, urgent); err != nil {
		return device.Faultf(device.Offline,
			"the watchdog of unit %d on %s could not be written: %w", d.id, d.bus.name, err)
	}
	d.mu.Lock()
	d.fed = time.Now()
	d.mu.Unlock()
	return nil
}

// closeTimeout bounds the return of the outputs to safe in Close, which then waits for an exchange under way.
const closeTimeout = 1500 * time.Millisecond

// Close brings the outputs to safe, and releases the bus.
func (d *unitDevice) Close() error {
	d.moving.Lock()
	defer d.moving.Unlock()
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	settings := d.settings()
	for _, p := range d.points {
		if s := settings[p.Name]; p.output && !(s.confirmed && s.value == p.Safe) {
			errs = append(errs, d.apply(ctx, p, p.Safe))
		}
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.bus.release()
	return errors.Join(errs...)
}
