package chip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// sensorConfig is the YAML of a measuring chip of which its owner writes the place only.
type sensorConfig struct {
	board.I2C
	desc device.Description
	make func(*i2cChip) sensor
}

// Describe needs no hardware.
func (c *sensorConfig) Describe() device.Description { return c.desc }

// Open finds the chip, and checks its ID if it has one.
func (c *sensorConfig) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.desc, c.make)
}

// sensor is a measuring chip on an I2C bus. It is configured before its first sample and again
// after an error: a chip that lost its supply or its bus has lost its settings. Its functions leave
// errors in the i2cChip.
type sensor struct {
	managedChip
	dev       *i2cChip
	configure func()               // finds the chip, checks that it is the right one, writes its settings
	read      func(*driver.Sample) // one measurement, added to the sample
	halt      func()               // at Close; may be nil
	every     time.Duration        // how often the chip has to be read while it is watched; 0 if it has not
}

// openSensor finds the chip, so that a missing chip is reported at once.
func openSensor(ctx context.Context, at board.I2C, desc device.Description, make func(*i2cChip) sensor) (device.Device, error) {
	dev := newI2CChip(at, desc.Model)
	s := make(dev)
	s.dev = dev
	s.managedChip = managedChip{desc: desc, on: dev, setUp: func() error { s.configure(); return dev.err }}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if s.every > 0 {
		return polledSensor{&s}, nil
	}
	return &s, nil
}

// Sample takes one measurement of all points. It blocks for the chip's conversion.
func (s *sensor) Sample(ctx context.Context) ([]device.Reading, error) {
	return s.sample(ctx, func(out *driver.Sample) error { s.read(out); return s.dev.err })
}

// Close halts the chip if it can. A chip that does not answer any more has no
// output to leave unsafe, so that is no error.
func (s *sensor) Close() error {
	if err := s.on.Begin(context.Background()); err != nil {
		return err
	}
	defer s.on.End()
	if s.ready && s.halt != nil {
		s.halt()
	}
	s.ready, s.closed = false, true
	return nil
}

// polledSensor is a sensor that has to be read regularly.
type polledSensor struct{ *sensor }

// Watch reads the chip regularly while it works, and emits nothing: the next sample has the values. Only
// samples ask a chip that failed, so that one that hangs does not block its bus at each read.
func (s polledSensor) Watch(ctx context.Context, _ func(device.Reading)) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if s.works(ctx) {
				s.Sample(ctx) // its error is in the next sample too
			}
		}
	}
}

func (s polledSensor) works(ctx context.Context) bool {
	if s.on.Begin(ctx) != nil {
		return false
	}
	defer s.on.End()
	return s.ready
}

// unwell returns err as a fault with a remedy, unless it is a fault already.
func unwell(model string, on fmt.Stringer, err error) error {
	var fault *device.Fault
	switch {
	case err == nil, errors.As(err, &fault), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return device.Faultf(device.Offline, "%s on %s did not finish in time: %w; its bus may be busy, or it hangs",
			model, on, err)
	}
	return device.Faultf(device.Offline, "%s on %s does not work: %w; check the chip's type and its wires", model, on, err)
}

// measures returns a measurement from min to max in its unit.
func measures(name, unit, what string, min, max float64) device.Point {
	return device.Point{Name: name, Kind: device.KindMeasurement, Unit: unit, Description: what, Range: device.Range{Min: min, Max: max}}
}

// describeClimate describes a sensor of temperature and humidity.
func describeClimate(model string, coldest, hottest float64) device.Description {
	return device.Description{Model: model, Points: []device.Point{
		measures("temperature", "Cel", "air temperature", coldest, hottest),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

// describeAirQuality describes a sensor of gases, up to these parts per million and per billion.
func describeAirQuality(model string, co2, voc float64) device.Description {
	return device.Description{Model: model, Points: []device.Point{
		measures("concentration_co2", "[ppm]", "carbon dioxide in the air, estimated", 400, co2),
		measures("concentration_voc", "[ppb]", "volatile organic compounds in the air", 0, voc),
	}}
}

// errSettings means that a chip no longer has the settings that were written to it.
var errSettings = errors.New("it has lost its settings; check its supply")
