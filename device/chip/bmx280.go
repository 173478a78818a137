package chip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

const (
	bmx280Trim     = 0x88 // 26 bytes (table 16, page 24)
	bmx280TrimHum  = 0xE1 // 7 bytes
	bmx280ID       = 0xD0
	bmx280CtrlHum  = 0xF2 // and then the status, ctrl_meas, config, and after one more the data
	bmx280Status   = 0xF3
	bmx280CtrlMeas = 0xF4
	bmx280Filter   = 0xF5 // "config" (5.4.6)

	bmx280Hum       = 3           // four samples of the humidity (section 5.4.3, page 27)
	bmx280Samples   = 3<<5 | 3<<2 // and of temperature and pressure (5.4.5)
	bmx280Forced    = 1           // measure once and sleep
	bmx280Measuring = 1 << 3      // of the status (5.4.4)
	bmx280Updating  = 1 << 0      // its calibration is being loaded

	bmx280Start   = 2 * time.Millisecond  // after power-on (section 1.1)
	bmx280Longest = 30 * time.Millisecond // of such a measurement (section 9.1)
)

// The tolerances beyond the chip's limits (sections 1.3 and 1.4). The datasheet's formula clamps
// any humidity to its limits. With this bound a reading of zeros or ones, which is 100 % or more
// beyond, is refused.
const (
	bmx280Degrees = 1.5
	bmx280Pascals = 170
	bmx280Percent = 20
)

var bmx280IDs = map[byte]string{0x56: "BMP280", 0x57: "BMP280", 0x58: "BMP280", 0x60: "BME280", 0x55: "BMP180"}

// newBMx280 returns the Config of bme280 or bmp280 (Bosch BST-BME280-DS002-15 and
// BST-BMP280-DS001-11; pages here are of the first). The ranges are those in which the chip
// works, not those of its full accuracy (sections 1.2 to 1.4). The pressure is in Pa, the
// humidity in % of saturation.
//
// periph's adapter is not used: it does not extend the sign of dig_H4 and dig_H5, and trusts a
// calibration that it has read once. It never checks whether the chip still has its settings, and
// clamps an impossible humidity to 0 or 100 %.
func newBMx280(at board.I2C, model string) driver.Config {
	desc, humid := describePressure(model), model == "BME280"
	if humid {
		desc.Points = append(desc.Points, measures("humidity", "%", "relative humidity", 0, 100))
	}
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		d := &bmx280{i2cChip: dev, humid: humid}
		return sensor{configure: d.calibrate, read: d.read}
	}}
}

// describePressure describes Bosch's sensors of the air's pressure.
func describePressure(model string) device.Description {
	return device.Description{Model: model, Points: []device.Point{
		measures("temperature", "Cel", "air temperature", -40, 85),
		measures("pressure", "Pa", "air pressure", 30000, 110000),
	}}
}

// checkBoschID checks that the chip is of its model.
func (d *i2cChip) checkBoschID() {
	id := d.readByte(bmx280ID)
	switch is := bmx280IDs[id]; is {
	case d.model:
	case "":
		d.fail(device.Faultf(device.Invalid, "at %#02x on %s is no %s: its id is %#02x; check the chip and its address", d.at.Address, d.at.Bus, d.model, id))
	default:
		d.fail(device.Faultf(device.Invalid, "at %#02x on %s is a %s, not a %s; write \"driver: %s\"", d.at.Address, d.at.Bus, is, d.model, strings.ToLower(is)))
	}
}

// errCalibration is of factory values that cannot be right.
var errCalibration = errors.New("its calibration cannot be read; check the wiring and the supply")

// bmx280 is a chip with its calibration.
type bmx280 struct {
	*i2cChip
	humid bool

	t [3]int64 // dig_T1 to dig_T3
	p [9]int64 // dig_P1 to dig_P9
	h [6]int64 // dig_H1 to dig_H6
}

// calibrate reads the factory values. None that divides or multiplies all is 0 or all
// ones, and the chip has them only when it has started.
func (d *bmx280) calibrate() {
	d.checkBoschID()
	for range 5 {
		if d.readByte(bmx280Status)&bmx280Updating == 0 {
			break
		}
		d.sleep(bmx280Start)
	}
	var b [26]byte
	d.readTwice(bmx280Trim, b[:])
	word := func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) }
	for i := range d.t {
		d.t[i] = word(b[2*i:])
	}
	for i := range d.p {
		d.p[i] = word(b[6+2*i:])
	}
	d.t[0], d.p[0] = d.t[0]&0xFFFF, d.p[0]&0xFFFF // these two have no sign
	good := programmed(d.t[0], 0xFFFF) && programmed(d.t[1], -1) && programmed(d.p[0], 0xFFFF)
	if d.humid {
		var h [7]byte
		d.readTwice(bmx280TrimHum, h[:])
		d.h = [6]int64{int64(b[25]), word(h[:]), int64(h[2]),
			int64(int8(h[3]))<<4 | int64(h[4]&0x0F), // 12 bits with a sign, and so the next
			int64(int8(h[5]))<<4 | int64(h[4]>>4), int64(int8(h[6]))}
		good = good && programmed(d.h[1], -1)
	}
	if !good {
		d.fail(errCalibration)
	}
}

// programmed reports whether a factory value is neither zeros nor ones.
func programmed(n, ones int64) bool { return n != 0 && n != ones }

// read measures once. The settings are written each time and read back together with
// the result, so that a chip that was without supply meanwhile is not believed. It has
// no CRC; asleep its registers stand still, so that they are read twice.
func (d *bmx280) read(out *driver.Sample) {
	settings := []byte{bmx280Filter, 0, bmx280CtrlHum, bmx280Hum, bmx280CtrlMeas, bmx280Samples | bmx280Forced} // pairs (section 6.2.1)
	if !d.humid {
		settings = []byte{bmx280Filter, 0, bmx280CtrlMeas, bmx280Samples | bmx280Forced}
	}
	d.write(settings...)
	var b [13]byte
	for range 3 {
		d.sleep(bmx280Longest)
		if d.readTwice(bmx280CtrlHum, b[:]); b[1]&bmx280Measuring == 0 {
			break
		}
	}
	switch {
	case b[2]&^3 != bmx280Samples || b[3]&^3 != 0 || d.humid && b[0]&7 != bmx280Hum:
		d.fail(errSettings)
		return
	case b[1]&bmx280Measuring != 0 || b[2]&3 != 0:
		d.fail(fmt.Errorf("its measurement does not end (status %#02x)", b[1]))
		return
	}
	twenty := func(b []byte) int64 { return int64(b[0])<<12 | int64(b[1])<<4 | int64(b[2])>>4 }
	fine := d.fine(twenty(b[8:]))
	out.Near(float64((fine*5+128)>>8)/100, bmx280Degrees)
	out.Near(d.pascals(twenty(b[5:]), fine), bmx280Pascals)
	if d.humid {
		out.Near(d.percent(int64(binary.BigEndian.Uint16(b[11:])), fine), bmx280Percent)
	}
}

// The formulas are the integer ones of section 4.2.3 (pages 25 and 26), without the clamping of the
// last one. In 64 bits no calibration makes them overflow.

// fine is the temperature in 1/5120 °C.
func (d *bmx280) fine(raw int64) int64 {
	x := ((raw>>3 - d.t[0]<<1) * d.t[1]) >> 11
	y := raw>>4 - d.t[0]
	return x + ((y*y)>>12*d.t[2])>>14
}

func (d *bmx280) pascals(raw, fine int64) float64 {
	x := fine - 128000
	y := x*x*d.p[5] + (x*d.p[4])<<17 + d.p[3]<<35
	x = (x*x*d.p[2])>>8 + (x*d.p[1])<<12
	x = ((1<<47 + x) * d.p[0]) >> 33
	if x == 0 {
		return 0 // and so none that can be
	}
	p := ((1048576-raw)<<31 - y) * 3125 / x
	x = (d.p[8] * (p >> 13) * (p >> 13)) >> 25
	y = (d.p[7] * p) >> 19
	return float64((p+x+y)>>8+d.p[6]<<4) / 256
}

func (d *bmx280) percent(raw, fine int64) float64 {
	x := fine - 76800
	a := (raw<<14 - d.h[3]<<20 - d.h[4]*x + 16384) >> 15
	b := ((x * d.h[5]) >> 10 * ((x*d.h[2])>>11 + 32768)) >> 10
	x = a * (((b+2097152)*d.h[1] + 8192) >> 14)
	x -= ((x >> 15) * (x >> 15) >> 7 * d.h[0]) >> 4
	return float64(x>>12) / 1024
}
