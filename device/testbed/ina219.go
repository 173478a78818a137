package testbed

import (
	"math"
	"time"
)

// INA219 emulates Texas Instruments' current sensor with a shunt of 0.1 ohm (SBOS448,
// section 8.6). It has no calibration until the driver writes one.
type INA219 struct {
	inputs
	wordRegisters
	ready time.Time // end of the first conversion after power-on; data is 0 until then
}

// NewINA219 returns a sensor with the inputs voltage in V and current in A.
func NewINA219() *INA219 {
	c := &INA219{inputs: inputs{"voltage": 5, "current": 0.5}}
	c.beforeRead = func(byte) { c.convert() }
	c.afterWrite = func(pointer byte) {
		switch {
		case pointer == 0 && c.reg[0]&inaReset != 0:
			c.Reset()
		case pointer == 0:
			c.ready = time.Now().Add(inaConversion)
		case pointer < 5: // read-only
			c.reg[pointer] = 0
			c.convert()
		}
	}
	return c
}

const (
	inaShunt      = 0.1
	inaReset      = 0x8000
	inaBus        = 4 // bit of the mode: continuous
	inaDone       = 0x0002
	inaConversion = 20 * time.Millisecond
)

func (c *INA219) Reset() {
	c.pointer = 0
	c.reg = []uint16{0x399f, 0, 0, 0, 0, 0}
	c.ready = time.Now().Add(inaConversion)
}

// convert measures the quantities of the mode within the range of the amplifier.
func (c *INA219) convert() {
	mode := c.reg[0] & 7
	if mode&inaBus == 0 || time.Now().Before(c.ready) {
		return
	}
	if mode&1 != 0 {
		most := 0.04 * float64(int(1)<<(c.reg[0]>>11&3))
		volts := min(max(c.inputs["current"]*inaShunt, -most), most)
		c.reg[1] = uint16(int16(math.Round(volts / 10e-6)))
	}
	if mode&2 != 0 {
		c.reg[2] = uint16(math.Round(c.inputs["voltage"]/0.004))<<3 | inaDone
	}
}
