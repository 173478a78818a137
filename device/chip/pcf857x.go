package chip

import (
	"context"
	"encoding/binary"
	"slices"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// pcf857xConfig is the YAML of pcf8574 and pcf8575 (NXP, the PCF8574 with revision 5,
// the PCF8575 with revision 5).
//
// These chips have no registers. A pin that is written high is pulled up by 0.1 mA only, and is an
// input at the same time. After power-on, all pins are high. The load has to be wired to run while
// its pin is low (active_low), or it runs from power-on until the chip is first written.
//
// There is nothing to read but the pins. A disturbed bus reads all of them low or all high. That
// shows where an output has the other level, and else cannot be told from pins that are so. A chip
// with registers can tell.
//
// periph's adapter is not used: it registers pins for the whole process, and treats the levels that
// the pins read as those last written.
type pcf857xConfig struct{ pinsConfig }

func newPCF857x(b *board.Board, model string) *pcf857xConfig {
	pins, addresses := numbered("P"), slices.Concat(board.Addresses(0x20, 0x27), board.Addresses(0x38, 0x3F))
	if model == "PCF8575" {
		pins, addresses = numbered("P0", "P1"), board.Addresses(0x20, 0x27)
	}
	return &pcf857xConfig{pinsConfig{I2C: b.I2C(addresses...), model: model, pins: pins}}
}

// Open finds the chip, by reading its pins.
func (c *pcf857xConfig) Open(ctx context.Context) (device.Device, error) {
	dev := newI2CChip(c.I2C, c.model)
	p := &pcf857x{ports: newPorts(c.named()), dev: dev, bytes: len(c.pins) / 8}
	return openReadable(ctx, dev, c.Describe(), p, p.look)
}

// pcf857x is the chip.
type pcf857x struct {
	ports
	dev   *i2cChip
	bytes int
	doubt bool // a transfer failed: it may have been without supply
}

// setUp writes all pins at once: those without a name and the inputs are high, as
// after power-on.
func (p *pcf857x) setUp() error {
	p.write(^p.outputs | p.rest)
	p.doubt = p.dev.err != nil
	return p.look()
}

// intact looks at the pins. One that lost its supply has all of them high, also
// those that were written low; where none was, it is as it was.
func (p *pcf857x) intact() (bool, error) {
	if err := p.look(); err != nil || p.doubt {
		return false, err
	}
	low := p.outputs &^ p.latch
	return low == 0 || p.level&low != low, nil
}

// tell believes no input where all pins have one level, and an output has to have the other.
func (p *pcf857x) tell(out *driver.Sample) {
	if all := uint16(1)<<(8*p.bytes) - 1; p.level == 0 || p.level == all {
		for _, n := range p.named {
			if err := p.follows(n); err != nil {
				out.FaultAll(err.Error() + "; all pins read the same, so that none is believed")
				return
			}
		}
	}
	p.ports.tell(out)
}

func (p *pcf857x) look() error {
	var b [2]byte
	p.dev.transfer(nil, b[:p.bytes])
	p.level = binary.LittleEndian.Uint16(b[:])
	p.doubt = p.doubt || p.dev.err != nil
	return p.dev.err
}

func (p *pcf857x) write(level uint16) {
	b := [2]byte{byte(level), byte(level >> 8)}
	p.dev.write(b[:p.bytes]...)
	p.latch = level
}

func (p *pcf857x) set(i int, v device.Value) error {
	n := p.named[i]
	p.write(n.put(p.latch, v.Bool()))
	if err := p.look(); err != nil {
		return err
	}
	return p.follows(n)
}
