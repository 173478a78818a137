package chip

import (
	"encoding/binary"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

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

// newBMP180 returns the Config of bmp180 (Bosch BST-BMP180-DS000-09). The ranges are those of
// section 1 (page 6).
//
// periph's adapter is not used: see newBMx280.
func newBMP180(at board.I2C) driver.Config {
	return &sensorConfig{at, describePressure("BMP180"), func(dev *i2cChip) sensor {
		d := &bmp180{i2cChip: dev}
		return sensor{configure: d.calibrate, read: d.read}
	}}
}

// bmp180 is a chip with its calibration.
type bmp180 struct {
	*i2cChip
	ac1, ac2, ac3, ac4, ac5, ac6, b1, b2, mb, mc, md int64
}

// calibrate reads the factory values: "none of the words has the value 0 or 0xFFFF"
// (page 13).
func (d *bmp180) calibrate() {
	d.checkBoschID()
	var b [22]byte
	d.readTwice(bmp180Trim, b[:])
	for i, v := range []*int64{&d.ac1, &d.ac2, &d.ac3, &d.ac4, &d.ac5, &d.ac6, &d.b1, &d.b2, &d.mb, &d.mc, &d.md} {
		word := binary.BigEndian.Uint16(b[2*i:])
		if word == 0 || word == 0xFFFF {
			d.fail(errCalibration)
		}
		if *v = int64(int16(word)); i >= 3 && i <= 5 {
			*v = int64(word)
		}
	}
}

// convert measures one quantity. The register of the order shows afterwards that it is
// this order that was carried out; after power-on it shows none.
func (d *bmp180) convert(order byte, takes time.Duration, b []byte) {
	d.command(takes, bmp180Control, order)
	d.readSteady(bmp180Result, b)
	if d.readByte(bmp180Control) != order&^bmp180Converting {
		d.fail(errSettings)
	}
}

func (d *bmp180) read(out *driver.Sample) {
	var t [2]byte
	var p [3]byte
	d.convert(bmp180Temperature, bmp180TemperatureTakes, t[:])
	d.convert(bmp180Pressure, bmp180PressureTakes, p[:])
	raw := (int64(p[0])<<16 | int64(p[1])<<8 | int64(p[2])) >> (8 - bmp180Oss)
	tenths, pascals := d.compensate(int64(binary.BigEndian.Uint16(t[:])), raw, bmp180Oss)
	out.Near(float64(tenths)/10, bmp180Degrees)
	out.Near(float64(pascals), bmp180Pascals)
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
