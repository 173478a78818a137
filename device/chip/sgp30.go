package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// sgp30Config is the YAML of sgp30.
//
// periph's adapter is not used: it sleeps for 20 s when it is made, ignores the
// CRC, and writes the errors of a goroutine of its own to the log.
type sgp30Config struct{ board.I2C }

// The ranges are those of Sensirion's SGP30 datasheet (version 1.0, table 2). Both
// are estimates: the chip feels hydrogen and ethanol.
func (c *sgp30Config) Describe() device.Description {
	return device.Description{Model: "SGP30", Points: []device.Point{
		measures("concentration_co2", "[ppm]", "carbon dioxide in the air, estimated", 400, 60000),
		measures("concentration_voc", "[ppb]", "volatile organic compounds in the air", 0, 60000),
	}}
}

var (
	sgp30Features = []byte{0x20, 0x2F}
	sgp30Start    = []byte{0x20, 0x03}
	sgp30Measure  = []byte{0x20, 0x08}
	sgp30Baseline = []byte{0x20, 0x15}
)

const (
	sgp30Soon   = 10 * time.Millisecond
	sgp30Takes  = 12 * time.Millisecond
	sgp30Warm   = 15 * time.Second // until then it says 400 and 0 (page 8)
	sgp30Asks   = time.Hour        // it has a baseline after about so long, says Sensirion's own driver
	sgp30Learns = 90 * time.Minute // and surely after so long
	sgp30Every  = time.Second      // "to ensure proper operation of the dynamic baseline compensation"
	sgp30Enough = sgp30Every * 9 / 10
)

// sgp30 is a chip that has to be asked each second, and what it said last.
type sgp30 struct {
	*i2cChip
	started, at time.Time
	last        [2]float64
	learnt      bool // it had a baseline
	doubt       bool // of the last
}

// sgp30Device asks by itself while it is watched.
type sgp30Device struct{ *sensor }

// Open finds the chip by its type of product. For the first 15 s after that, and
// after an error, its points are faults: it warms up.
func (c *sgp30Config) Open(ctx context.Context) (device.Device, error) {
	var d sgp30
	s, err := openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			features, err := dev.words(sgp30Features, sgp30Soon, 1)
			if err != nil {
				return err
			}
			if features[0]>>12 != 0 {
				return dev.otherChip(features[0], 0x0022)
			}
			d = sgp30{i2cChip: dev, started: time.Now()}
			return dev.command(sgp30Soon, sgp30Start...)
		},
		read: func(_ *i2cChip, out *driver.Sample) error { return d.read(out) },
	})
	if err != nil {
		return nil, err
	}
	return sgp30Device{s.(*sensor)}, nil
}

// read asks at most once a second, as the datasheet demands, however often it is sampled.
func (dev *sgp30) read(out *driver.Sample) error {
	if time.Since(dev.at) >= sgp30Enough {
		got, err := dev.words(sgp30Measure, sgp30Takes, 2)
		if err != nil {
			return err
		}
		dev.at, dev.last = time.Now(), [2]float64{float64(got[0]), float64(got[1])}
		if dev.doubt, err = dev.idle(); err != nil {
			return err
		}
	}
	switch {
	case dev.at.Sub(dev.started) < sgp30Warm:
		out.FaultAll("the chip warms up, for 15 s")
	case dev.doubt:
		out.FaultAll("it reads what it reads while it does not measure; in its first hour that cannot be told from the cleanest air")
	default:
		out.Number(dev.last[0])
		out.Number(dev.last[1])
		out.At(dev.at)
	}
	return nil
}

// idle reports whether the chip may have lost its supply since it was started, so that it
// does not measure: it reads 400 and 0 then, as in the cleanest air. Once it has had a
// baseline, a missing one proves that; then it is an error, and the chip is started again.
func (dev *sgp30) idle() (doubt bool, err error) {
	age := dev.at.Sub(dev.started)
	clean := dev.last == [2]float64{400, 0} && age >= sgp30Warm
	if !clean && (dev.learnt || age < sgp30Asks) {
		return false, nil
	}
	got, err := dev.words(sgp30Baseline, sgp30Soon, 2)
	switch {
	case err != nil:
		return false, err
	case got[0] != 0 || got[1] != 0:
		dev.learnt = true
		return false, nil
	case dev.learnt || age > sgp30Learns:
		return false, errSettings
	}
	return clean, nil
}

// Watch samples the chip each second and emits nothing: the next sample has the values.
func (d sgp30Device) Watch(ctx context.Context, _ func(device.Reading)) error {
	tick := time.NewTicker(sgp30Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			d.Sample(ctx) // its error is in the next sample too
		}
	}
}
