package chip

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// mpuConfig is the YAML of mpu6050, mpu6500 and mpu9250, whose compass is a chip of
// its own and not read.
//
// periph's adapter is not used: it is for SPI only.
type mpuConfig struct {
	board.I2C
	Accel int `json:"accel" jsonschema:"the range of the acceleration in g: 2, 4, 8 or 16"`
	Gyro  int `json:"gyro" jsonschema:"the range of the rotation in degrees per second: 250, 500, 1000 or 2000"`

	model mpuModel
}

// mpuModel is one chip of the family. Its temperature is raw/slope + at0.
type mpuModel struct {
	name       string
	id         byte
	slope, at0 float64
}

var (
	mpu6050 = mpuModel{"MPU6050", 0x68, 340, 36.53} // InvenSense RM-MPU-6000A-00, 4.18
	mpu6500 = mpuModel{"MPU6500", 0x70, 333.87, 21} // PS-MPU-6500A-01, 3.4.2
	mpu9250 = mpuModel{"MPU9250", 0x71, 333.87, 21} // RM-MPU-9250A-00, 4.23
	mpuGs   = []int{2, 4, 8, 16}                    // in the order of their bits
	mpuDegs = []int{250, 500, 1000, 2000}           // the same
)

const (
	mpuFilter = 0x1A // and then the ranges
	mpuData   = 0x3B // acceleration, temperature, rotation
	mpuPower  = 0x6B
	mpuID     = 0x75

	mpu44Hz  = 3    // the filter; after power-on it is 0
	mpuAwake = 0x01 // on the gyroscope's clock
	mpuStart = 50 * time.Millisecond
)

func newMPU(b *board.Board, m mpuModel) *mpuConfig {
	return &mpuConfig{I2C: b.I2C(0x68, 0x69), Accel: 2, Gyro: 250, model: m}
}

// Validate finds mistakes without hardware.
func (c *mpuConfig) Validate() error {
	switch {
	case !slices.Contains(mpuGs, c.Accel):
		return device.Faultf(device.Invalid, "accel: the range is 2, 4, 8 or 16 g, not %d", c.Accel)
	case !slices.Contains(mpuDegs, c.Gyro):
		return device.Faultf(device.Invalid, "gyro: the range is 250, 500, 1000 or 2000 degrees per second, not %d", c.Gyro)
	}
	return c.I2C.Validate()
}

// Describe needs no hardware.
func (c *mpuConfig) Describe() device.Description {
	points := slices.Concat(
		axes("accel", "m/s2", "acceleration, gravity included, along", float64(c.Accel)*gravity),
		[]device.Point{measures("temperature", "Cel", "temperature of the chip", -40, 85)},
		axes("gyro", "deg/s", "rotation about", float64(c.Gyro)),
	)
	return device.Description{Model: c.model.name, Points: points}
}

// Open finds the chip and checks by its id that it is the configured model.
func (c *mpuConfig) Open(ctx context.Context) (device.Device, error) {
	settings := [3]byte{mpu44Hz, byte(slices.Index(mpuDegs, c.Gyro)) << 3, byte(slices.Index(mpuGs, c.Accel)) << 3}
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				dev.checkID(mpuID, c.model.id)
				dev.write(mpuPower, mpuAwake)
				dev.command(mpuStart, append([]byte{mpuFilter}, settings[:]...)...)
			},
			read: func(out *driver.Sample) {
				var has [3]byte
				dev.readFrom(mpuFilter, has[:])
				if power := dev.readByte(mpuPower); has != settings || power != mpuAwake {
					dev.fail(errSettings)
				}
				var raw [14]byte
				dev.readSteady(mpuData, raw[:])
				for i := range 7 {
					n := int16(binary.BigEndian.Uint16(raw[2*i:]))
					switch {
					case i < 3:
						addClipped(out, n, 1<<15, float64(c.Accel)*gravity)
					case i == 3:
						out.Near(float64(n)/c.model.slope+c.model.at0, 1)
					default:
						addClipped(out, n, 1<<15, float64(c.Gyro))
					}
				}
			},
			halt: func() { dev.write(mpuPower, 0x40) },
		}
	})
}
