package testbed

import (
	"math"
	"time"
)

// INA219 is Texas Instruments' meter of a current through a shunt of 0.1 ohm (SBOS448,
// section 8.6). It has no calibration, as long as nobody writes one.
type INA219 struct {
	told
	words
	ready time.Time // of the first conversion after power-on; until then it reads 0
}

// NewINA219 measures a voltage in V and a current in A.
func NewINA219() *INA219 {
	c := &INA219{told: told{"voltage": 5, "current": 0.5}}
	c.read = func(byte) { c.convert() }
	c.written = func(pointer byte) {
		switch {
		case pointer == 0 && c.reg[0]&inaReset != 0:
			c.Reset()
		case pointer == 0:
			c.ready = time.Now().Add(inaLongest)
		case pointer < 5: // read-only
			c.reg[pointer] = 0
			c.convert()
		}
	}
	return c
}

const (
	inaShunt   = 0.1
	inaReset   = 0x8000
	inaBus     = 4 // bit of the mode: on and on
	inaDone    = 0x0002
	inaLongest = 20 * time.Millisecond
)

func (c *INA219) Reset() {
	c.pointer = 0
	c.reg = []uint16{0x399f, 0, 0, 0, 0, 0}
	c.ready = time.Now().Add(inaLongest)
}

// convert measures what the mode says, within the range of the amplifier.
func (c *INA219) convert() {
	mode := c.reg[0] & 7
	if mode&inaBus == 0 || time.Now().Before(c.ready) {
		return
	}
	if mode&1 != 0 {
		most := 0.04 * float64(int(1)<<(c.reg[0]>>11&3))
		volts := min(max(c.told["current"]*inaShunt, -most), most)
		c.reg[1] = uint16(int16(math.Round(volts / 10e-6)))
	}
	if mode&2 != 0 {
		c.reg[2] = uint16(math.Round(c.told["voltage"]/0.004))<<3 | inaDone
	}
}
