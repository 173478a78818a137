package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// hdc302xConfig is the YAML of hdc302x.
//
// periph's adapter is not used: it lets the chip measure on its own, and a result
// that is fetched twice before the next one is there looks like a chip that is
// gone. Here each sample is a measurement.
type hdc302xConfig struct{ board.I2C }

// The range is that of Texas Instruments SNAS825 (HDC3020, HDC3021, HDC3022;
// "Recommended Operating Conditions").
func (c *hdc302xConfig) Describe() device.Description {
	return device.Description{Model: "HDC302x", Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 125),
		measures("humidity", "%", "relative humidity", 0, 100),
	}}
}

var (
	hdc302xManufacturer = []byte{0x37, 0x81}
	hdc302xStop         = []byte{0x30, 0x93} // what an earlier program may have begun
	hdc302xMeasure      = []byte{0x24, 0x00} // once, with the least noise
)

const (
	hdc302xDegrees = 0.4 // its accuracy ("Electrical Characteristics")

	hdc302xStopped = time.Millisecond
	hdc302xLongest = 20 * time.Millisecond // of a measurement; 12.5 ms is typical
)

// Open finds the chip by its maker.
func (c *hdc302xConfig) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			maker, err := dev.words(hdc302xManufacturer, time.Millisecond, 1)
			if err != nil {
				return err
			}
			if maker[0] != 0x3000 {
				return dev.otherChip(maker[0], 0x3000)
			}
			return dev.command(hdc302xStopped, hdc302xStop...)
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			got, err := dev.words(hdc302xMeasure, hdc302xLongest, 2)
			if err != nil {
				return err
			}
			out.Near(-45+175*share(got[0]), hdc302xDegrees)
			out.Number(100 * share(got[1]))
			return nil
		},
	})
}
