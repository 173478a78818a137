package chip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// sensor is a measuring chip on an I2C bus. It is configured before its first sample and
// again after an error, because a chip that lost its supply or its bus has lost its
// settings too.
type sensor struct {
	kept
	dev       *i2cChip
	configure func(*i2cChip) error          // finds the chip, checks that it is the right one, writes its settings
	read      func(*i2cChip, *sample) error // one measurement, added to the sample
	halt      func(*i2cChip) error          // at Close; may be nil
}

// openSensor finds the chip, so that its owner is told at once when it is not there.
func openSensor(ctx context.Context, at board.I2C, desc device.Description, s sensor) (device.Device, error) {
	dev, err := newI2CChip(at, desc.Model)
	if err != nil {
		return nil, err
	}
	s.dev = dev
	s.kept = kept{desc: desc, on: dev.conn, setUp: func() error { return s.configure(dev) }}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return &s, nil
}

// Sample takes one measurement of all points. It blocks for the chip's conversion.
func (s *sensor) Sample(ctx context.Context) ([]device.Reading, error) {
	return s.sample(ctx, func(out *sample) error { return s.read(s.dev, out) })
}

// Close halts the chip where it knows how. A chip that does not answer any more has no
// output to leave unsafe, so that is no error.
func (s *sensor) Close() error {
	if err := s.on.Begin(context.Background()); err != nil {
		return err
	}
	defer s.on.End()
	if s.ready && s.halt != nil {
		s.halt(s.dev)
	}
	s.ready, s.closed = false, true
	return nil
}

// unwell is err with what to do, where the bus did not say so already.
func unwell(model string, on fmt.Stringer, err error) error {
	var fault *device.Fault
	switch {
	case err == nil, errors.As(err, &fault), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return device.Faultf(device.Offline, "%s on %s was not done in its time: %w; a sensor may need a longer \"every\"", model, on, err)
	}
	return device.Faultf(device.Offline, "%s on %s does not answer as it should: %w; is it this chip, and well wired?", model, on, err)
}

// measures is a point that a chip measures, from min to max in its unit.
func measures(name, unit, what string, min, max float64) device.Point {
	return device.Point{Name: name, Kind: device.KindMeasurement, Unit: unit, Description: what, Range: device.Range{Min: min, Max: max}}
}

// errSettings is of a chip that does not have the settings any more that it got.
var errSettings = errors.New("it has lost its settings; check its supply")

// sample collects the readings of one measurement.
type sample struct {
	points   []device.Point
	readings []device.Reading
	nonsense string // why a value cannot be; "" while all can
}

// number adds the value of the next point. A value outside the point's range is
// nonsense: the bus or the chip disturbed it, and with it the whole sample.
func (s *sample) number(n float64) { s.near(n, 0) }

// near is number for a value that may be beyond the point's range by the chip's
// accuracy: at 85 °C a thermometer to 85 °C may read 85.4. Such a value is the limit.
func (s *sample) near(n, accuracy float64) {
	s.nonsense = cmp.Or(s.apart(n, accuracy), s.nonsense)
}

// apart is near for one of several things that are measured separately, such as the
// thermometers on one wire or the inputs of a converter: its value says nothing of the
// other points. It returns why the value cannot be, or "".
func (s *sample) apart(n, accuracy float64) (why string) {
	n = device.Tidy(n)
	p := s.points[len(s.readings)]
	limited := p.Range != (device.Range{})
	if limited && n >= p.Range.Min-accuracy && n <= p.Range.Max+accuracy {
		n = min(max(n, p.Range.Min), p.Range.Max)
	}
	if !device.Number(n).Finite() || limited && !p.Range.Contains(n) {
		why = p.Name + " reads " + device.Number(n).String() + ", which cannot be: only " + p.Range.String() + " can; check the wiring and the supply"
		s.lacks(why)
		return why
	}
	s.readings = append(s.readings, device.Reading{Point: p.Name, Value: device.Number(n), Quality: device.Good, At: time.Now()})
	return ""
}

// lacks adds a fault of the next point. It is for what the chip itself tells, such as
// a value beyond its range, and says nothing of the other points.
func (s *sample) lacks(why string) {
	p := s.points[len(s.readings)]
	s.readings = append(s.readings, device.Reading{Point: p.Name, Quality: device.Bad, At: time.Now(), Why: why})
}

// again adds values of an earlier measurement, from when it was taken.
func (s *sample) again(at time.Time, values ...float64) {
	for _, n := range values {
		s.number(n)
		s.readings[len(s.readings)-1].At = at
	}
}

// whole returns the readings. Where one value is nonsense, none is believed: they came
// by the same bus from the same chip.
func (s *sample) whole() []device.Reading {
	if s.nonsense != "" {
		for i, r := range s.readings {
			if r.Quality == device.Good {
				s.readings[i] = device.Reading{Point: r.Point, Quality: device.Bad, At: r.At, Why: s.nonsense}
			}
		}
	}
	return s.readings
}
