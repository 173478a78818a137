package testbed

import "time"

// MCP9808 emulates Microchip's thermometer (DS25095, section 5). Its registers are so
// simple that an owner can describe them in YAML.
type MCP9808 struct {
	inputs
	wordRegisters
	ready time.Time // end of the first conversion after power-on; data is 0 until then
}

const (
	mcp9808Shutdown   = 0x0100
	mcp9808Conversion = 250 * time.Millisecond
)

// NewMCP9808 returns a thermometer with the input temperature, in °C.
func NewMCP9808() *MCP9808 {
	c := &MCP9808{inputs: inputs{"temperature": 20}}
	c.beforeRead = func(pointer byte) {
		if pointer == 5 && c.reg[1]&mcp9808Shutdown == 0 && !time.Now().Before(c.ready) {
			c.convert()
		}
	}
	c.afterWrite = func(pointer byte) {
		switch pointer {
		case 5: // read-only
			c.reg[5] = 0
			c.beforeRead(5)
		case 6, 7:
			c.reg[6], c.reg[7] = 0x0054, 0x0400
		}
	}
	return c
}

func (c *MCP9808) Reset() {
	c.pointer = 0
	c.reg = []uint16{0x001f, 0, 0, 0, 0, 0, 0x0054, 0x0400, 0x0300}
	c.ready = time.Now().Add(mcp9808Conversion)
}

// convert stores 13 bits of two's complement in steps of 1/16 °C, and above them the flags
// of three limits, which are all 0 °C.
func (c *MCP9808) convert() {
	steps := sixteenths(c.inputs["temperature"], -40, 125)
	c.reg[5] = uint16(steps) & 0x1fff
	if steps >= int16(c.reg[4]) {
		c.reg[5] |= 0x8000
	}
	if steps > int16(c.reg[2]) {
		c.reg[5] |= 0x4000
	}
	if steps < int16(c.reg[3]) {
		c.reg[5] |= 0x2000
	}
}
