package chip

import (
	"context"
	"encoding/binary"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// bmp180Config is the YAML of bmp180 (Bosch BST-BMP180-DS000-09).
//
// periph's adapter is not used: see bmx280Config.
type bmp180Config struct{ board.I2C }

// The ranges are those of section 1 (page 6).
func (c *bmp180Config) Describe() device.Description {
	return device.Description{Model: "BMP180", Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 85),
		measures("pressure", "Pa", "air pressure", 30000, 110000),
	}}
}

const (
	bmp180Trim    = 0xAA // 11 words (page 13)
	bmp180Control = 0xF4
	bmp180Result  = 0xF6

	bmp180Temperature = 0x2E
	bmp180Pressure    = 0xB4 // four samples: oss is 2
	bmp180Converting  = 0x20
	bmp180Oss         = 2

	// of table 8 (page 21)
	bmp180TemperatureTakes = 4500 * time.Microsecond
	bmp180PressureTakes    = 13500 * time.Microsecond

	// the accuracy of section 1 (page 6)
	bmp180Degrees = 2
	bmp180Pascals = 400
)

// Open finds the chip and checks by its id that it is the one that was written.
func (c *bmp180Config) Open(ctx context.Context) (device.Device, error) {
	var d bmp180
	return openSensor(ctx, c.I2C, c.Describe(), sensor{
		configure: func(dev *i2cChip) error {
			d.i2cChip = dev
			if err := checkBoschID(dev); err != nil {
				return err
			}
			return d.calibrate()
		},
		read: func(_ *i2cChip, out *driver.Sample) error { return d.read(out) },
	})
}

// bmp180 is a chip with its calibration.
type bmp180 struct {
	*i2cChip
	ac1, ac2, ac3, ac4, ac5, ac6, b1, b2, mb, mc, md int64
}

// calibrate reads the factory values: "none of the words has the value 0 or 0xFFFF"
// (page 13).
func (d *bmp180) calibrate() error {
	b, err := d.readTwice(bmp180Trim, 22)
	if err != nil {
		return err
	}
	for i, v := range []*int64{&d.ac1, &d.ac2, &d.ac3, &d.ac4, &d.ac5, &d.ac6, &d.b1, &d.b2, &d.mb, &d.mc, &d.md} {
		word := binary.BigEndian.Uint16(b[2*i:])
		if word == 0 || word == 0xFFFF {
			return errCalibration
		}
		if *v = int64(int16(word)); i >= 3 && i <= 5 {
			*v = int64(word)
		}
	}
	return nil
}

// convert measures one quantity. The register of the order shows afterwards that it is
// this order that was carried out; after power-on it shows none.
func (d *bmp180) convert(order byte, takes time.Duration, b []byte) error {
	if err := d.command(takes, bmp180Control, order); err != nil {
		return err
	}
	if err := d.readSteady(bmp180Result, b); err != nil {
		return err
	}
	done, err := d.readByte(bmp180Control)
	if err == nil && done != order&^bmp180Converting {
		err = errSettings
	}
	return err
}

func (d *bmp180) read(out *driver.Sample) error {
	var t [2]byte
	if err := d.convert(bmp180Temperature, bmp180TemperatureTakes, t[:]); err != nil {
		return err
	}
	var p [3]byte
	if err := d.convert(bmp180Pressure, bmp180PressureTakes, p[:]); err != nil {
		return err
	}
	raw := (int64(p[0])<<16 | int64(p[1])<<8 | int64(p[2])) >> (8 - bmp180Oss)
	tenths, pascals := d.compensate(int64(binary.BigEndian.Uint16(t[:])), raw, bmp180Oss)
	out.Near(float64(tenths)/10, bmp180Degrees)
	out.Near(float64(pascals), bmp180Pascals)
	return nil
}

// compensate is the datasheet's figure 4 (page 15): the temperature in 0.1 °C and the
// pressure in Pa.
func (d *bmp180) compensate(ut, up int64, oss uint) (tenths, pascals int64) {
	x := ((ut - d.ac6) * d.ac5) >> 15
	if x+d.md == 0 {
		return -1 << 20, 0 // and so none that can be
	}
	b5 := x + (d.mc<<11)/(x+d.md)
	b6 := b5 - 4000
	b3 := ((d.ac1*4+(d.b2*((b6*b6)>>12))>>11+(d.ac2*b6)>>11)<<oss + 2) / 4
	x = ((d.ac3*b6)>>13 + (d.b1*((b6*b6)>>12))>>16 + 2) >> 2
	b4 := (d.ac4 * (x + 32768)) >> 15
	if b4 == 0 {
		return -1 << 20, 0
	}
	p := (up - b3) * (50000 >> oss) * 2 / b4
	x = ((p >> 8) * (p >> 8) * 3038) >> 16
	return (b5 + 8) >> 4, p + (x+(-7357*p)>>16+3791)>>4
}
