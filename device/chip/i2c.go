package chip

import (
	"encoding/binary"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// i2cChip is one chip on an I2C bus. Its methods are called between Begin and End of conn;
// those that read words take the higher byte first.
type i2cChip struct {
	conn  *board.Conn
	at    board.I2C
	model string
}

// newI2CChip returns the chip at its place. It does no I/O.
func newI2CChip(at board.I2C, model string) (*i2cChip, error) {
	conn, err := at.Conn()
	return &i2cChip{conn, at, model}, err
}

func (d *i2cChip) tx(w, r []byte) error { return d.conn.Tx(d.at.Address, w, r) }

func (d *i2cChip) write(b ...byte) error { return d.tx(b, nil) }

// command writes b and waits for the time that the chip takes.
func (d *i2cChip) command(takes time.Duration, b ...byte) error {
	if err := d.tx(b, nil); err != nil {
		return err
	}
	return d.conn.Sleep(takes)
}

func (d *i2cChip) readFrom(register byte, b []byte) error { return d.tx([]byte{register}, b) }

func (d *i2cChip) readByte(register byte) (byte, error) {
	var b [1]byte
	err := d.readFrom(register, b[:])
	return b[0], err
}

func (d *i2cChip) readWord(register byte) (uint16, error) {
	var b [2]byte
	err := d.readFrom(register, b[:])
	return binary.BigEndian.Uint16(b[:]), err
}

func (d *i2cChip) writeWord(register byte, word uint16) error {
	return d.write(register, byte(word>>8), byte(word))
}

// readSteady is readFrom for measurements. Bits that are all zeros or all ones are read
// once more: that is what a transfer reads during which the data line was held low or
// released, and one such transfer is no measurement.
func (d *i2cChip) readSteady(register byte, b []byte) error {
	err := d.readFrom(register, b)
	if err == nil && uniform(b) {
		err = d.readFrom(register, b)
	}
	return err
}

func (d *i2cChip) readSteadyWord(register byte) (uint16, error) {
	var b [2]byte
	err := d.readSteady(register, b[:])
	return binary.BigEndian.Uint16(b[:]), err
}

// uniform reports whether all bits of b are the same.
func uniform(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] || c != 0 && c != 0xFF })
}

// checkID reads a register of one byte that has to be id.
func (d *i2cChip) checkID(register, id byte) error {
	got, err := d.readByte(register)
	if err == nil && got != id {
		err = d.otherChip(uint16(got), uint16(id))
	}
	return err
}

// checkWord reads a register of one word whose bits in mask have to be those of want.
func (d *i2cChip) checkWord(register byte, mask, want uint16) error {
	got, err := d.readWord(register)
	if err == nil && got&mask != want&mask {
		err = d.otherChip(got, want)
	}
	return err
}

// checkSettings is checkWord for settings that were written before: a chip that lost its
// supply has others.
func (d *i2cChip) checkSettings(register byte, mask, want uint16) error {
	got, err := d.readWord(register)
	if err == nil && got&mask != want&mask {
		err = errSettings
	}
	return err
}

// otherChip is the fault of a chip whose identification is got and not want.
func (d *i2cChip) otherChip(got, want uint16) error {
	return device.Faultf(device.Invalid, "at %#02x on %s is no %s: it says %#02x, not %#02x; check which chip this is and its address", d.at.Address, d.at.Bus, d.model, got, want)
}
