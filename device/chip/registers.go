package chip

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// registersConfig is the YAML of registers: a chip that is described by its owner,
// so that a simple sensor needs no Go. An LM75A, whose temperature is in the upper
// 11 bits of register 0:
//
//	cellar:
//	  driver: registers
//	  address: 0x4F
//	  registers:
//	    - { name: temperature, register: 0, width: 16, shift: 5, signed: on, scale: 0.125, unit: Cel, range: -55..125 }
//
// It only measures. It has no outputs: a register's number does not say what moves, or whether the
// neighbouring bits may change with it. Nor does it say how to verify the move, or which value is
// safe after a loss of supply. An output needs a driver that knows its chip.
//
// Each point is read in a transfer of its own, because not every chip counts on
// from one register to the next.
type registersConfig struct {
	board.I2C
	ID        *registerWord   `json:"id,omitempty" jsonschema:"a register that says which chip this is, and what it has to say"`
	Init      []registerWrite `json:"init,omitempty" jsonschema:"what is written to the chip before its first measurement, in this order; only settings of a sensor, because no guard sees what it moves"`
	Registers []registerPoint `json:"registers" jsonschema:"what is measured: a name and a register for each"`
}

// registerPlace is the register of a number, its width and its byte order.
type registerPlace struct {
	Register uint8  `json:"register" jsonschema:"the register's address, such as 0x0f"`
	Width    int    `json:"width,omitempty" jsonschema:"how many bits it has: 8, 16, 24 or 32; 8 when not written"`
	Endian   string `json:"endian,omitempty" jsonschema:"which byte comes first: big, the highest, or little, the lowest; big when not written"`
}

type registerWord struct {
	registerPlace
	Value uint32 `json:"value" jsonschema:"the number"`
}

type registerWrite struct {
	registerWord
	Wait time.Duration `json:"wait,omitempty" jsonschema:"how long the chip needs afterwards, at most 2s; no time when not written"`
}

type registerPoint struct {
	Name string `json:"name" jsonschema:"the point's name, such as temperature"`
	registerPlace
	Shift  int    `json:"shift,omitempty" jsonschema:"how many of the lowest bits do not belong to the number"`
	Mask   uint32 `json:"mask,omitempty" jsonschema:"which bits remain after the shift, such as 0x0fff; all when not written"`
	Signed bool   `json:"signed,omitempty" jsonschema:"on if the highest remaining bit is a sign (two's complement)"`
	driver.Quantity
}

// The longest wait and the longest init: opening a chip must not hold up the rest.
const (
	maxRegisterWait = 2 * time.Second
	maxRegisters    = 32
)

// Validate finds mistakes without hardware.
func (c *registersConfig) Validate() error {
	if err := c.I2C.Validate(); err != nil {
		return err
	}
	switch {
	case len(c.Registers) == 0:
		return device.Faultf(device.Invalid, "registers: the list is empty; add one, such as { name: temperature, register: 0x00, range: -40..85 }")
	case len(c.Registers) > maxRegisters || len(c.Init) > maxRegisters:
		return device.Faultf(device.Invalid, "registers, init: %d and %d are too many; each can have %d", len(c.Registers), len(c.Init), maxRegisters)
	}
	if c.ID != nil {
		if err := c.ID.validate("id"); err != nil {
			return err
		}
	}
	for i, w := range c.Init {
		of := fmt.Sprintf("init[%d]", i)
		if err := w.validate(of); err != nil {
			return err
		}
		if w.Wait < 0 || w.Wait > maxRegisterWait {
			return device.Faultf(device.Invalid, "%s: wait: %v is not 0 to %v", of, w.Wait, maxRegisterWait)
		}
	}
	for _, p := range c.Registers {
		if err := p.validate(); err != nil {
			return err
		}
	}
	return c.Describe().Validate()
}

func (p registerPlace) validate(of string) error {
	switch {
	case !slices.Contains([]int{0, 8, 16, 24, 32}, p.Width):
		return device.Faultf(device.Invalid, "%s: width: %d is not supported; use 8, 16, 24 or 32", of, p.Width)
	case !slices.Contains([]string{"", "big", "little"}, p.Endian):
		return device.Faultf(device.Invalid, "%s: endian: %.20q is unknown; use big or little", of, p.Endian)
	}
	return nil
}

func (w registerWord) validate(of string) error {
	if err := w.registerPlace.validate(of); err != nil {
		return err
	}
	if bits.Len32(w.Value) > w.width() {
		return device.Faultf(device.Invalid, "%s: value: %#x does not fit into %d bits; write the register's width", of, w.Value, w.width())
	}
	return nil
}

func (p registerPoint) validate() error {
	if err := device.CheckName(p.Name); err != nil {
		return device.Faultf(device.Invalid, "registers: name: %w", err)
	}
	if err := p.registerPlace.validate(p.Name); err != nil {
		return err
	}
	left := p.width() - p.Shift
	switch {
	case p.Shift < 0 || left < 1:
		return device.Faultf(device.Invalid, "%s: shift: %d leaves nothing of %d bits", p.Name, p.Shift, p.width())
	case p.Mask&(p.Mask+1) != 0:
		return device.Faultf(device.Invalid, "%s: mask: %#x has a gap; it is applied after the shift, so write ones from the lowest bit on, such as 0x0fff", p.Name, p.Mask)
	case bits.Len32(p.Mask) > left:
		return device.Faultf(device.Invalid, "%s: mask: %#x has more bits than the shift leaves: %d", p.Name, p.Mask, left)
	case p.Signed && p.bits() < 2:
		return device.Faultf(device.Invalid, "%s: signed: one bit cannot have a sign", p.Name)
	}
	if err := p.Quantity.Validate(p.Name); err != nil {
		return err
	}
	return p.reaches()
}

// reaches refuses a range that the register cannot get into: the scale is wrong.
func (p registerPoint) reaches() error {
	low, high := 0.0, math.Exp2(float64(p.bits()))-1
	if p.Signed {
		low, high = -math.Exp2(float64(p.bits()-1)), math.Exp2(float64(p.bits()-1))-1
	}
	low, high = p.Number(low), p.Number(high)
	all := device.Range{Min: min(low, high), Max: max(low, high)}
	if p.Range.Min > all.Max || p.Range.Max < all.Min {
		return device.Faultf(device.Invalid, "%s.range: %v is impossible; the register's range is %v", p.Name, p.Range, all)
	}
	return nil
}

func (p registerPlace) width() int {
	if p.Width == 0 {
		return 8
	}
	return p.Width
}

// bits returns how many bits the number has.
func (p registerPoint) bits() int {
	if p.Mask != 0 {
		return bits.Len32(p.Mask)
	}
	return p.width() - p.Shift
}

// Describe returns the configured points.
func (c *registersConfig) Describe() device.Description {
	d := device.Description{Model: "chip with registers"}
	for _, p := range c.Registers {
		d.Points = append(d.Points, driver.InputPoint{Quantity: p.Quantity}.Point(p.Name))
	}
	return d
}

// Open checks the ID, if configured, and writes init.
// That is done again after an error and when the chip does not have it any more,
// because it may have lost its supply.
func (c *registersConfig) Open(ctx context.Context) (device.Device, error) {
	// settings are the registers that read back as they were written. Other registers, such as those
	// for commands, are left out.
	var settings []registerWord
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() { settings = c.configure(dev) },
			read: func(out *driver.Sample) {
				for _, w := range settings {
					if w.read(dev) != w.Value {
						dev.fail(errSettings)
					}
				}
				for _, p := range c.Registers {
					out.Number(p.value(p.read(dev)))
				}
			},
		}
	})
}

// configure checks the id before it writes anything. Without id and init it reads the
// first register, so that a chip that is not there is found at once.
func (c *registersConfig) configure(dev *i2cChip) (settings []registerWord) {
	if c.ID != nil {
		if is := c.ID.read(dev); is != c.ID.Value {
			dev.fail(device.Faultf(device.Invalid, "at %#02x on %s is another chip: its register %#02x has %#x, not %#x as in id; check the address", c.Address, c.Bus, c.ID.Register, is, c.ID.Value))
		}
	}
	for _, w := range c.Init {
		dev.command(w.Wait, append([]byte{w.Register}, w.bytes(w.Value)...)...)
	}
	if dev.err != nil {
		return nil
	}
	for _, w := range c.Init {
		if is := w.read(dev); dev.err == nil && is == w.Value {
			settings = append(settings, w.registerWord)
		}
		dev.err = nil // a register that cannot be read is left out
	}
	c.Registers[0].read(dev)
	return settings
}

func (p registerPlace) read(dev *i2cChip) uint32 {
	raw := make([]byte, p.width()/8, 4)
	dev.readSteady(p.Register, raw)
	if p.Endian != "little" {
		slices.Reverse(raw)
	}
	return binary.LittleEndian.Uint32(raw[:4])
}

func (p registerPlace) bytes(n uint32) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, n)[:p.width()/8]
	if p.Endian != "little" {
		slices.Reverse(raw)
	}
	return raw
}

func (p registerPoint) value(raw uint32) float64 {
	spare := 32 - p.bits()
	raw = raw >> p.Shift << spare
	n := float64(raw >> spare)
	if p.Signed {
		n = float64(int32(raw) >> spare)
	}
	return p.Number(n)
}
