package testbed

import "time"

// TMP102 emulates Texas Instruments' thermometer (SBOS397, sections 7.5 and 8).
type TMP102 struct {
	inputs
	wordRegisters
	ready time.Time // end of the first conversion after power-on; data is 0 until then
}

// NewTMP102 returns a thermometer with the input temperature, in °C.
func NewTMP102() *TMP102 {
	c := &TMP102{inputs: inputs{"temperature": 20}}
	c.beforeRead = func(pointer byte) {
		if pointer == 0 && c.reg[1]&tmpShutdown == 0 && !time.Now().Before(c.ready) {
			c.convert()
		}
	}
	c.afterWrite = func(pointer byte) {
		switch pointer {
		case 0: // read-only
			c.reg[0] = 0
			c.beforeRead(0)
		case 1:
			if c.reg[1]&tmpShutdown != 0 && c.reg[1]&tmpOneShot != 0 {
				c.convert()
			}
			// The resolution is fixed, no alert is raised, and the conversion is done.
			c.reg[1] = c.reg[1]&^tmpOneShot | 0x6020
			if c.reg[1]&tmpShutdown != 0 {
				c.reg[1] |= tmpOneShot
			}
		}
	}
	return c
}

const (
	tmpConversion = 26 * time.Millisecond

	tmpOneShot  = 0x8000
	tmpShutdown = 0x0100
	tmpExtended = 0x0010
)

func (c *TMP102) Reset() {
	c.pointer = 0
	c.reg = []uint16{0, 0x60a0, 0x4b00, 0x5000} // 75 and 80 °C
	c.ready = time.Now().Add(tmpConversion)
}

// convert stores the temperature in steps of 1/16 °C in the highest 12 bits, or in 13 bits
// and a flag in extended mode.
func (c *TMP102) convert() {
	if c.reg[1]&tmpExtended != 0 {
		c.reg[0] = uint16(sixteenths(c.inputs["temperature"], -55, 150)<<3) | 1
		return
	}
	c.reg[0] = uint16(sixteenths(c.inputs["temperature"], -55, 127.9375) << 4)
}
