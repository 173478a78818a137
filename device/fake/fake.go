package fake

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

// Device is a device without hardware.
type Device struct {
	desc device.Description

	mu       sync.Mutex
	points   []state // in the order of the description
	lost     bool
	closed   bool
	watchers []*watcher
}

// state holds the state of one point.
type state struct {
	device.Point
	value device.Value // a display's text, too; none of an event or a camera
	why   string       // why it cannot be read; "" if it can
}

// New returns a fake of the device with that description. start has values by point, which replace the plausible ones
// that it has otherwise; those that do not fit their point are left out. Outputs are at their safe values.
func New(desc device.Description, start map[string]device.Value) *Device {
	d := &Device{desc: desc, points: make([]state, len(desc.Points))}
	for i, p := range desc.Points {
		d.points[i] = state{Point: p, value: Start(p)}
		if v, ok := start[p.Name]; ok && measured(p) && fits(p, v) == nil {
			d.points[i].value = v
		}
	}
	return d
}

// Describe is constant.
func (d *Device) Describe() device.Description { return d.desc }

// Push has a measurement or a state read v from now on, and ends a fault of it. An event happens with v.
func (d *Device) Push(point string, v device.Value) error {
	return d.change(point, func(s *state) error {
		if s.Kind != device.KindEvent && !measured(s.Point) {
			return device.Faultf(device.Invalid, "%s is a %s: only a measurement, a state or an event is set from outside",
				point, s.Kind)
		}
		if err := fits(s.Point, v); err != nil {
			return err
		}
		s.why = ""
		if s.Kind == device.KindEvent {
			d.emit(device.Reading{Point: point, Value: v, Quality: device.Good, At: time.Now()})
			return nil
		}
		s.value = v
		return nil
	})
}

// Press has an event begin and end, as a button that is pressed and released.
func (d *Device) Press(event string) error {
	if p, ok := d.desc.Point(event); ok && p.Kind != device.KindEvent {
		return device.Faultf(device.Invalid, "%s is a %s and no event: set its value", event, p.Kind)
	}
	if err := d.Push(event, device.Bool(true)); err != nil {
		return err
	}
	return d.Push(event, device.Bool(false))
}

// Fault has a point be unreadable, and says why, until Push or Heal. An output still moves then, but is not read back.
func (d *Device) Fault(point, why string) error {
	if why == "" {
		why = "it is simulated as broken"
	}
	return d.change(point, func(s *state) error {
		if !measured(s.Point) && !s.Kind.Output() {
			return device.Faultf(device.Invalid, "%s is a %s, which is not read", point, s.Kind)
		}
		s.why = why
		return nil
	})
}

// Heal ends the fault of a point.
func (d *Device) Heal(point string) error {
	return d.change(point, func(s *state) error { s.why = ""; return nil })
}

// change changes the state of a point, and tells watchers what it reads then.
func (d *Device) change(point string, do func(*state) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.points, func(s state) bool { return s.Name == point })
	if i < 0 {
		return device.Faultf(device.Invalid, "there is no point %q%s", device.Clip(point, 40), d.suggest(point))
	}
	if err := do(&d.points[i]); err != nil {
		return err
	}
	if measured(d.points[i].Point) {
		d.emit(d.read(d.points[i]))
	}
	return nil
}

func (d *Device) suggest(point string) string {
	names := make([]string, len(d.points))
	for i, s := range d.points {
		names[i] = s.Name
	}
	return device.Suggest(point, names, "point")
}

// Lose has the device answer nothing, as if it were unplugged, until Find.
func (d *Device) Lose() { d.connect(false) }

// Find ends Lose. The device has the values that it had, and its outputs are where they were.
func (d *Device) Find() { d.connect(true) }

func (d *Device) connect(found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = !found
	for _, s := range d.points {
		if measured(s.Point) {
			d.emit(d.read(s))
		}
	}
}

// Value returns a point's value; of an output, the value of its hardware. It is zero for a camera, an event and an
// unknown point.
func (d *Device) Value(point string) device.Value {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.points {
		if s.Name == point {
			return s.value
		}
	}
	return device.Value{}
}

// Simulate does as a reading says: a good one of a point is Push, or Heal without a value, and any other is Fault;
// without a point, a good one is Find, and any other Lose. By it a fake in another process is told.
func (d *Device) Simulate(_ context.Context, r device.Reading) error {
	switch good := r.Quality == device.Good; {
	case r.Point == "" && good:
		d.Find()
	case r.Point == "":
		d.Lose()
	case !good:
		return d.Fault(r.Point, r.Why)
	case r.Value.IsZero():
		return d.Heal(r.Point)
	default:
		return d.Push(r.Point, r.Value)
	}
	return nil
}

func (d *Device) offline() error {
	switch {
	case d.closed:
		return device.Faultf(device.Offline, "the device is closed")
	case d.lost:
		return device.Faultf(device.Offline, "it is simulated as unplugged")
	}
	return nil
}

// read returns the reading of a measurement, a state or an output.
func (d *Device) read(s state) device.Reading {
	r := device.Reading{Point: s.Name, Value: s.value, Quality: device.Good, At: time.Now()}
	why := s.why
	if err := d.offline(); err != nil {
		why = err.Error()
	}
	if why != "" {
		r.Value, r.Quality, r.Why = device.Value{}, device.Bad, why
	}
	return r
}

// Sample reads all measurements and states, and the outputs back.
func (d *Device) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.offline(); err != nil {
		return nil, err
	}
	var all []device.Reading
	for _, s := range d.points {
		if measured(s.Point) || s.Kind.Output() {
			all = append(all, d.read(s))
		}
	}
	return all, nil
}

// Apply moves an output.
func (d *Device) Apply(ctx context.Context, point string, v device.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.offline(); err != nil {
		return err
	}
	for i, s := range d.points {
		if s.Name != point || !s.Kind.Output() {
			continue
		}
		err := s.Accepts(v)
		if err == nil {
			d.points[i].value = v
		}
		return err
	}
	return device.Faultf(device.Invalid, "%q is not an output of this device", device.Clip(point, 40))
}

// Show keeps the text, which Value returns.
func (d *Device) Show(ctx context.Context, point, text string) error {
	_, err := d.use(ctx, point, device.KindText, func(s *state) { s.value = device.Text(text) })
	return err
}

// Capture returns a picture of a grey field.
func (d *Device) Capture(ctx context.Context, point string) (device.Image, error) {
	at, err := d.use(ctx, point, device.KindImage, func(*state) {})
	if err != nil {
		return device.Image{}, err
	}
	data, err := picture()
	return device.Image{MIME: "image/png", Data: data, At: at}, err
}

func (d *Device) use(ctx context.Context, point string, kind device.Kind, do func(*state)) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.offline(); err != nil {
		return time.Time{}, err
	}
	for i, s := range d.points {
		if s.Name == point && s.Kind == kind {
			do(&d.points[i])
			return time.Now(), nil
		}
	}
	return time.Time{}, device.Faultf(
		device.Invalid, "%q is no point of kind %s of this device", device.Clip(point, 40), kind,
	)
}

func picture() ([]byte, error) {
	img := image.NewGray(image.Rect(0, 0, 64, 48))
	for i := range img.Pix {
		img.Pix[i] = color.Gray{Y: uint8(64 + i%64*2)}.Y
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// Close brings the outputs to safe, and makes later uses fail.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for i, s := range d.points {
		if s.Kind.Output() {
			d.points[i].value = s.Safe
		}
	}
	return nil
}
