package chip

import (
	"context"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// tmp102Config is the YAML of tmp102.
//
// periph's adapter is not used: it goes on when the settings cannot be read, keeps
// the extended mode of a program before it without decoding it, and wakes
// the chip where it means to halt it.
type tmp102Config struct{ board.I2C }

// The range is that of Texas Instruments SBOS397 in its normal mode: 12 bits of
// 0.0625 degrees (table "12-bit temperature data format").
func (c *tmp102Config) Describe() device.Description {
	return device.Description{Model: "TMP102", Points: []device.Point{measures("temperature", "Cel", "temperature", -55, 128)}}
}

const (
	tmp102Temperature = 0x00
	tmp102Settings    = 0x01

	// tmp102Normal is 12 bits and 4 conversions in a second, as after power-on, and a
	// fault queue of 2 for the alert, which is not used (table 7, page 7; table 10). After
	// power-on that is 1, so that it shows whether the settings are ours still.
	tmp102Normal  = 0x68A0
	tmp102Alert   = 0x0020                // follows the temperature
	tmp102First   = 35 * time.Millisecond // until the first conversion it reads 0 degrees
	tmp102Degrees = 3                     // its accuracy
)

// Open finds the chip. It has no id, so its settings are one: two of their bits are
// always set.
func (c *tmp102Config) Open(ctx context.Context) (device.Device, error) {
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			if err := dev.writeWord(tmp102Settings, tmp102Normal); err != nil {
				return err
			}
			if err := dev.checkWord(tmp102Settings, ^uint16(tmp102Alert), tmp102Normal); err != nil {
				return err
			}
			return dev.conn.Sleep(tmp102First)
		},
		read: func(dev *i2cChip, out *driver.Sample) error {
			raw, err := dev.readSteadyWord(tmp102Temperature)
			if err != nil {
				return err
			}
			if raw&0x0F != 0 { // the lowest is set in the extended mode, the others never
				return errSettings
			}
			out.Near(float64(int16(raw))/256, tmp102Degrees)
			return dev.checkSettings(tmp102Settings, ^uint16(tmp102Alert), tmp102Normal)
		},
	})
}
