package chip

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/mmr"
)

// sensor is a measuring chip on an I2C bus. P is the chip as periph knows it. The
// chip is set up before its first sample and again after an error, because one that
// lost its supply or its bus has lost its settings too.
type sensor[P any] struct {
	desc  device.Description
	setUp func(i2c.Bus) (P, error) // finds the chip, checks that it is the right one, configures it
	read  func(P, *sample) error   // one measurement, told to the sample
	halt  func(i2c.Bus, P) error   // at Close; may be nil

	conn *board.Conn
	// of who has begun on conn:
	part   P
	ready  bool
	closed bool
}

// open finds the chip and so tells its owner at once when it is not there.
func (s *sensor[P]) open(ctx context.Context, at board.I2C) (device.Device, error) {
	conn, err := at.Conn()
	if err != nil {
		return nil, err
	}
	s.conn = conn
	if err := conn.Begin(ctx); err != nil {
		return nil, err
	}
	defer conn.End()
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *sensor[P]) prepare() (err error) {
	if s.ready {
		return nil
	}
	if s.part, err = s.setUp(s.conn); err != nil {
		return unwell(s.desc.Model, s.conn, err)
	}
	s.ready = true
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

// another is the fault of a chip that does not say that it is this one.
func another(at board.I2C, model string, says, wants uint16) error {
	return device.Faultf(device.Invalid, "at %#02x on %s is no %s: it says %#04x, not %#04x; check which chip this is and its address", at.Address, at.Bus, model, says, wants)
}

// errSettings is of a chip that does not have the settings any more that it got.
var errSettings = errors.New("it has lost its settings; check its supply")

// readSteady reads from a register on. Bits that are all zeros or all ones are read
// once more: so a transfer reads during which the data line was held low or let go,
// and one such transfer is no measurement.
func readSteady(dev conn.Conn, register byte, b []byte) error {
	err := dev.Tx([]byte{register}, b)
	if err == nil && uniform(b) {
		err = dev.Tx([]byte{register}, b)
	}
	return err
}

// uniform reports whether all bits of b are the same.
func uniform(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] || c != 0 && c != 0xFF })
}

// readWord is readSteady of a word.
func readWord(dev *mmr.Dev8, register byte) (uint16, error) {
	var b [2]byte
	err := readSteady(dev.Conn, register, b[:])
	return dev.Order.Uint16(b[:]), err
}

// bigEndian is a chip whose words begin with their higher byte.
func bigEndian(bus i2c.Bus, address uint16) *mmr.Dev8 {
	return &mmr.Dev8{Conn: &i2c.Dev{Bus: bus, Addr: address}, Order: binary.BigEndian}
}

// Describe is of the chip as its datasheet has it.
func (s *sensor[P]) Describe() device.Description { return s.desc }

// Sample takes one measurement of all points. It blocks for the chip's conversion.
func (s *sensor[P]) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := s.conn.Begin(ctx); err != nil {
		return nil, err
	}
	defer s.conn.End()
	if s.closed {
		return nil, device.Faultf(device.Offline, "%s is closed", s.desc.Model)
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	took := sample{points: s.desc.Points, readings: make([]device.Reading, 0, len(s.desc.Points))}
	if err := s.read(s.part, &took); err != nil {
		s.ready = false
		return nil, unwell(s.desc.Model, s.conn, err)
	}
	return took.whole(), unwell(s.desc.Model, s.conn, ctx.Err())
}

// Close puts the chip to rest where it knows how. One that does not answer any
// more has no output to leave unsafe, so that is no error.
func (s *sensor[P]) Close() error {
	if err := s.conn.Begin(context.Background()); err != nil {
		return err
	}
	defer s.conn.End()
	if s.ready && s.halt != nil {
		s.halt(s.conn, s.part)
	}
	s.ready, s.closed = false, true
	return nil
}

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
