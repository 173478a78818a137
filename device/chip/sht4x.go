package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// sht4xConfig is the YAML of sht4x. periph has no adapter.
type sht4xConfig struct{ board.I2C }

// The range is that of Sensirion's SHT4x datasheet (version 6.5, table 1 and 2).
func (c *sht4xConfig) Describe() device.Description {
	return device.Description{Model: "SHT4x", Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 125),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

var (
	sht4xSerial  = []byte{0x89}
	sht4xMeasure = []byte{0xFD} // high precision, no heater
)

const (
	sht4xLongest = 9 * time.Millisecond // the datasheet says 8.3 ms
	sht4xDegrees = 0.9                  // its accuracy at the ends of the range (figure 3)
)

// Open finds the chip by its serial number, whose CRC no other kind of chip has by
// accident.
func (c *sht4xConfig) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			_, err := dev.words(sht4xSerial, time.Millisecond, 2)
			return err
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			got, err := dev.words(sht4xMeasure, sht4xLongest, 2)
			if err != nil {
				return err
			}
			out.Near(-45+175*share(got[0]), sht4xDegrees)
			// "values that are non-physical may be reported … cropping": section 4.6
			out.Number(min(max(-6+125*share(got[1]), 0), 100))
			return nil
		},
	})
}
