package chip

import (
	"context"
	"encoding/binary"
	"math/bits"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// adxl345Config is the YAML of adxl345.
//
// periph's adapter is not used: on I2C it reads registers that do not exist, because it sets the
// bit that means reading on SPI; and it reads 0 after an error.
type adxl345Config struct {
	board.I2C
	Accel int `json:"accel" jsonschema:"the range of the acceleration in g: 2, 4, 8 or 16"`
}

// Analog Devices ADXL345, revision G: 256 steps for each g in its full resolution,
// whatever the range.
const (
	adxl345ID     = 0x00
	adxl345Power  = 0x2D
	adxl345Format = 0x31 // and then the data

	adxl345Is      = 0xE5
	adxl345Measure = 0x08
	adxl345Full    = 0x08                  // full resolution; after power-on it is off
	adxl345Start   = 12 * time.Millisecond // at 100 measurements in a second, 1.1 + 10 ms
)

// Validate finds mistakes without hardware.
func (c *adxl345Config) Validate() error {
	if c.Accel != 2 && c.Accel != 4 && c.Accel != 8 && c.Accel != 16 {
		return device.Faultf(device.Invalid, "accel: the range is 2, 4, 8 or 16 g, not %d", c.Accel)
	}
	return c.I2C.Validate()
}

// Describe needs no hardware.
func (c *adxl345Config) Describe() device.Description {
	return device.Description{Model: "ADXL345", Points: axes("accel", "m/s2", "acceleration, gravity included, along", float64(c.Accel)*gravity)}
}

// Open finds the chip and checks its id.
func (c *adxl345Config) Open(ctx context.Context) (device.Device, error) {
	format := byte(adxl345Full | bits.TrailingZeros(uint(c.Accel)) - 1)
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				dev.checkID(adxl345ID, adxl345Is)
				dev.write(adxl345Format, format)
				dev.command(adxl345Start, adxl345Power, adxl345Measure)
			},
			read: func(out *driver.Sample) {
				var all [adxl345Format - adxl345Power + 7]byte
				dev.readFrom(adxl345Power, all[:])
				raw := all[adxl345Format-adxl345Power:]
				if all[0] != adxl345Measure || raw[0] != format {
					dev.fail(errSettings)
				}
				for axis := range 3 {
					addClipped(out, int16(binary.LittleEndian.Uint16(raw[1+2*axis:])), int32(256*c.Accel), float64(c.Accel)*gravity)
				}
			},
			halt: func() { dev.write(adxl345Power, 0) },
		}
	})
}
