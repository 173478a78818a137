package chip

import (
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
)

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

// newHDC302x returns the Config of hdc302x. The range is that of Texas Instruments SNAS825
// (HDC3020, HDC3021, HDC3022; "Recommended Operating Conditions").
//
// periph's adapter is not used: it uses the chip's automatic mode, in which a result that is read
// twice looks like a missing chip. Here each sample is a measurement.
func newHDC302x(at board.I2C) driver.Config {
	return &sensorConfig{at, describeClimate("HDC302x", -40, 125), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				if maker := dev.words(hdc302xManufacturer, time.Millisecond, 1); maker[0] != 0x3000 {
					dev.fail(dev.otherChip(maker[0], 0x3000))
				}
				dev.command(hdc302xStopped, hdc302xStop...)
			},
			read: func(out *driver.Sample) {
				got := dev.words(hdc302xMeasure, hdc302xLongest, 2)
				out.Near(-45+175*share(got[0]), hdc302xDegrees)
				out.Number(100 * share(got[1]))
			},
		}
	}}
}
