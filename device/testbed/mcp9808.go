package testbed

import "time"

// MCP9808 is Microchip's thermometer (DS25095, section 5): a chip of plain
// registers, such as an owner would describe in YAML.
type MCP9808 struct {
	told
	words
	ready time.Time // of the first conversion after power-on; until then it reads 0
}

const (
	mcp9808Shutdown = 0x0100
	mcp9808First    = 250 * time.Millisecond // a conversion
)

// NewMCP9808 measures a temperature.
func NewMCP9808() *MCP9808 {
	c := &MCP9808{told: told{"temperature": 20}}
	c.read = func(pointer byte) {
		if pointer == 5 && c.reg[1]&mcp9808Shutdown == 0 && !time.Now().Before(c.ready) {
			c.convert()
		}
	}
	c.written = func(pointer byte) {
		switch pointer {
		case 5: // read-only
			c.reg[5] = 0
			c.read(5)
		case 6, 7:
			c.reg[6], c.reg[7] = 0x0054, 0x0400
		}
	}
	return c
}

func (c *MCP9808) Reset() {
	c.pointer = 0
	c.reg = []uint16{0x001f, 0, 0, 0, 0, 0, 0x0054, 0x0400, 0x0300}
	c.ready = time.Now().Add(mcp9808First)
}

// convert: 13 bits of two's complement in steps of 1/16 °C; above them flags for
// three limits, which are all 0 °C here.
func (c *MCP9808) convert() {
	steps := sixteenths(c.told["temperature"], -40, 125)
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
