package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// scd4xConfig is the YAML of scd4x.
//
// periph's adapter is not used: a sample of it waits for up to 11 s, in steps that
// do not end with the caller's deadline, and it never says which chip is there.
type scd4xConfig struct{ board.I2C }

// The ranges are those of Sensirion's SCD4x datasheet (version 1.7, tables 1 to 3):
// up to 40000 ppm is what the chip puts out, 400 to 2000 or 5000 is what it is
// calibrated for. 0 is what it says when it could not measure.
func (c *scd4xConfig) Describe() device.Description {
	return device.Description{Model: "SCD4x", Points: []device.Point{
		measures("concentration_co2", "[ppm]", "carbon dioxide in the air", 1, 40000),
		measures("temperature", "Cel", "air temperature", -10, 60),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

var (
	scd4xWake   = []byte{0x36, 0xF6}
	scd4xStop   = []byte{0x3F, 0x86}
	scd4xSerial = []byte{0x36, 0x82}
	scd4xStart  = []byte{0x21, 0xB1}
	scd4xReady  = []byte{0xE4, 0xB8}
	scd4xRead   = []byte{0xEC, 0x05}
)

const (
	scd4xAwake   = 30 * time.Millisecond
	scd4xStopped = 500 * time.Millisecond // until it listens again
	scd4xSoon    = time.Millisecond
	scd4xEvery   = 5 * time.Second // it measures
	scd4xDegrees = 1.5             // its accuracy (table 3)
)

// scd4x is a chip that measures by itself, and what it said last.
type scd4x struct {
	*i2cChip
	since time.Time // when it was started, or measured last
	last  []float64 // none before the first measurement
}

// Open finds the chip by its serial number, whose CRC no other kind of chip has by
// accident, and starts its measuring.
//
// The chip measures every 5 s, and hands each measurement out once. A sample in
// between is the last one again, with its time. The first is not there at once:
// until then, and when the chip has measured nothing for three periods, the points
// are faults, because nothing is known.
func (c *scd4xConfig) Open(ctx context.Context) (device.Device, error) {
	var d scd4x
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			d = scd4x{i2cChip: dev}
			// one that sleeps does not acknowledge that it wakes up, and one that
			// measures already listens to hardly anything but an end
			_ = dev.write(scd4xWake...)
			if err := dev.conn.Sleep(scd4xAwake); err != nil {
				return err
			}
			if err := dev.command(scd4xStopped, scd4xStop...); err != nil {
				return err
			}
			if _, err := dev.words(scd4xSerial, scd4xSoon, 3); err != nil {
				return err
			}
			d.since = time.Now()
			return dev.write(scd4xStart...)
		},
		read: func(_ *i2cChip, out *driver.Sample) error { return d.read(out) },
		halt: func(dev *i2cChip) error { return dev.write(scd4xStop...) },
	})
}

func (dev *scd4x) read(out *driver.Sample) error {
	ready, err := dev.words(scd4xReady, scd4xSoon, 1)
	if err != nil {
		return err
	}
	if ready[0]&0x07FF != 0 {
		got, err := dev.words(scd4xRead, scd4xSoon, 3)
		if err != nil {
			return err
		}
		dev.since = time.Now()
		dev.last = []float64{float64(got[0]), -45 + 175*share(got[1]), 100 * share(got[2])}
	}
	switch waited := time.Since(dev.since); {
	case waited > 3*scd4xEvery:
		return errSettings // it does not measure any more
	case dev.last == nil:
		out.FaultAll("the first measurement takes 5 s; it is on its way")
	default:
		dev.tell(out)
	}
	return nil
}

// tell adds the last measurement, from when it was taken.
func (dev *scd4x) tell(out *driver.Sample) {
	if dev.last[0] == 0 {
		out.Fault("it could not measure the carbon dioxide")
	} else {
		out.Number(dev.last[0])
	}
	out.Near(dev.last[1], scd4xDegrees)
	out.Number(dev.last[2])
	out.At(dev.since)
}
