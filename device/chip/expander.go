package chip

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"agentsite/device"
	"agentsite/device/board"
)

// expanderConfig is the YAML of the port expanders with registers. These are Microchip's MCP23008
// (DS21919) and MCP23017 (DS20001952), and Texas Instruments' TCA9534 (SCPS197) and TCA9535
// (SCPS201). NXP's PCA9534/9554 and PCA9535/9555 and others have the same registers.
//
// periph's adapters are not used: they make a pin an output before its level is written, so that a
// relay clicks. They read a low pin after an error, and register pins for the whole process.
type expanderConfig struct {
	pinsConfig
	at expanderRegisters
}

// expanderModel is one chip of the family.
type expanderModel struct {
	name      string
	pins      []string
	addresses []uint16
	at        expanderRegisters
}

// expanderRegisters are the addresses of a chip's registers. A chip with 16 pins has two
// of each, side by side, the first port first.
type expanderRegisters struct {
	first     [][]byte // written before all else
	direction byte     // 1 is an input
	polarity  byte     // 1 reads inverted
	pull      byte     // 0 where there are none
	input     byte
	latch     byte
}

// Of the first writes, those to 0x05 and 0x0A set an MCP23017 to BANK=0, in case a program has left
// BANK=1, where the registers have other addresses. The last one disables interrupts.
var (
	mcp23008 = expanderModel{"MCP23008", numbered("GP"), board.Addresses(0x20, 0x27), expanderRegisters{
		first: [][]byte{{0x05, 0}, {0x02, 0}}, direction: 0x00, polarity: 0x01, pull: 0x06, input: 0x09, latch: 0x0A,
	}}
	mcp23017 = expanderModel{"MCP23017", numbered("GPA", "GPB"), board.Addresses(0x20, 0x27), expanderRegisters{
		first: [][]byte{{0x05, 0}, {0x0A, 0}, {0x04, 0, 0}}, direction: 0x00, polarity: 0x02, pull: 0x0C, input: 0x12, latch: 0x14,
	}}
	tca9534 = expanderModel{"TCA9534", numbered("P"), slices.Concat(board.Addresses(0x20, 0x27), board.Addresses(0x38, 0x3F)), expanderRegisters{
		input: 0, latch: 1, polarity: 2, direction: 3,
	}}
	tca9535 = expanderModel{"TCA9535", numbered("P0", "P1"), board.Addresses(0x20, 0x27), expanderRegisters{
		input: 0, latch: 2, polarity: 4, direction: 6,
	}}
)

func newExpander(b *board.Board, m expanderModel) *expanderConfig {
	return &expanderConfig{pinsConfig{I2C: b.I2C(m.addresses...), model: m.name, pins: m.pins, pulls: m.at.pull != 0}, m.at}
}

// Open finds the chip, by reading its directions: it has no id.
func (c *expanderConfig) Open(ctx context.Context) (device.Device, error) {
	dev := newI2CChip(c.I2C, c.model)
	e := &expander{ports: newPorts(c.named()), at: c.at, dev: dev, bytes: len(c.pins) / 8, pulls: c.pulls}
	return openReadable(ctx, dev, c.Describe(), e, func() error { e.read(e.at.direction); return dev.err })
}

// expander is the chip.
type expander struct {
	ports
	at    expanderRegisters
	dev   *i2cChip
	bytes int // 8 pins each
	pulls bool
}

// setUp writes the levels before the directions: a pin that becomes an output is at
// safe already. Pins without a name become inputs, as after power-on.
func (e *expander) setUp() error {
	for _, w := range e.at.first {
		e.dev.write(w...)
	}
	e.wanted = e.rest
	e.write(e.at.latch, e.wanted)
	e.write(e.at.polarity, 0)
	if e.pulls {
		e.write(e.at.pull, e.pulled)
	}
	e.write(e.at.direction, ^e.outputs)
	intact, err := e.intact()
	if err == nil && (!intact || (e.latch^e.wanted)&e.outputs != 0) {
		err = errForgets
	}
	return err
}

// intact looks at the settings and at all pins. One that lost its supply has inputs
// only. The latches of inputs are low: where nothing is an output, the directions are all ones, so
// that no answer of zeros or ones only is taken for the chip's.
func (e *expander) intact() (bool, error) {
	direction := e.read(e.at.direction)
	e.latch, e.level = e.read(e.at.latch), e.read(e.at.input)
	pulled := e.pulled
	if e.pulls {
		pulled = e.read(e.at.pull)
	}
	return e.same(direction, ^e.outputs) && e.same(pulled, e.pulled) && e.same(e.latch&^e.outputs, 0), e.dev.err
}

// same compares the bits that the chip has.
func (e *expander) same(a, b uint16) bool { return (a^b)<<(16-8*e.bytes) == 0 }

func (e *expander) set(i int, v device.Value) error {
	n := e.named[i]
	next := n.put(e.wanted, v.Bool())
	e.wanted = n.put(e.wanted, n.safe) // until it is known to follow, it goes along with no other one
	e.write(e.at.latch, next)
	if intact, err := e.intact(); err != nil || !intact || (e.latch^next)&n.bit != 0 {
		return cmp.Or(err, errForgets)
	}
	e.wanted = next
	return e.follows(n)
}

func (e *expander) write(register byte, bits uint16) {
	b := [3]byte{register, byte(bits), byte(bits >> 8)}
	e.dev.write(b[:1+e.bytes]...)
}

func (e *expander) read(register byte) uint16 {
	var b [2]byte
	e.dev.readFrom(register, b[:e.bytes])
	return binary.LittleEndian.Uint16(b[:])
}
