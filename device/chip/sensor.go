package chip

import (
	"context"
	"errors"
	"fmt"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// sensor is a measuring chip on an I2C bus. It is configured before its first sample and
// again after an error, because a chip that lost its supply or its bus has lost its
// settings too.
type sensor struct {
	managedChip
	dev       *i2cChip
	configure func(*i2cChip) error                 // finds the chip, checks that it is the right one, writes its settings
	read      func(*i2cChip, *driver.Sample) error // one measurement, added to the sample
	halt      func(*i2cChip) error                 // at Close; may be nil
}

// openSensor finds the chip, so that its owner is told at once when it is not there.
func openSensor(ctx context.Context, at board.I2C, desc device.Description, s sensor) (device.Device, error) {
	dev, err := newI2CChip(at, desc.Model)
	if err != nil {
		return nil, err
	}
	s.dev = dev
	s.managedChip = managedChip{desc: desc, on: dev.conn, setUp: func() error { return s.configure(dev) }}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return &s, nil
}

// Sample takes one measurement of all points. It blocks for the chip's conversion.
func (s *sensor) Sample(ctx context.Context) ([]device.Reading, error) {
	return s.sample(ctx, func(out *driver.Sample) error { return s.read(s.dev, out) })
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

// unwell returns err as a fault that says what to do, unless it is a fault already.
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

// measures returns a measurement from min to max in its unit.
func measures(name, unit, what string, min, max float64) device.Point {
	return device.Point{Name: name, Kind: device.KindMeasurement, Unit: unit, Description: what, Range: device.Range{Min: min, Max: max}}
}

// errSettings means that a chip no longer has the settings that were written to it.
var errSettings = errors.New("it has lost its settings; check its supply")
