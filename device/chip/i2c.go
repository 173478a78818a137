package chip

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// i2cChip is one chip on an I2C bus. Its methods are called between Begin and End; those
// that read words take the higher byte first.
//
// err is the first failure since Begin. After it every method does nothing and reads zeros,
// so that a sequence of transfers is checked once, at its end.
type i2cChip struct {
	conn  *board.Conn
	at    board.I2C
	model string
	err   error
}

// newI2CChip returns the chip at its place. It does no I/O.
func newI2CChip(at board.I2C, model string) *i2cChip {
	return &i2cChip{conn: at.Conn(), at: at, model: model}
}

// Begin waits until no other call uses the chip; see board.Conn.
func (d *i2cChip) Begin(ctx context.Context) error { return d.begun(d.conn.Begin(ctx)) }

// BeginWrite is Begin before a write to an output.
func (d *i2cChip) BeginWrite(ctx context.Context) error { return d.begun(d.conn.BeginWrite(ctx)) }

func (d *i2cChip) begun(err error) error {
	if err == nil {
		d.err = nil
	}
	return err
}

// End closes the bus and lets the next call begin.
func (d *i2cChip) End() { d.conn.End() }

// String names the bus, for messages.
func (d *i2cChip) String() string { return d.conn.String() }

// fail makes err the failure, where there is none yet.
func (d *i2cChip) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// try is a transfer that may fail: its error is returned and is no failure.
func (d *i2cChip) try(w, r []byte) error { return d.conn.Tx(d.at.Address, w, r) }

func (d *i2cChip) transfer(w, r []byte) {
	if d.err == nil {
		d.err = d.try(w, r)
	}
	if d.err != nil {
		clear(r)
	}
}

func (d *i2cChip) write(b ...byte) { d.transfer(b, nil) }

func (d *i2cChip) sleep(t time.Duration) {
	if d.err == nil {
		d.err = d.conn.Sleep(t)
	}
}

// command writes b and waits for the time that the chip takes.
func (d *i2cChip) command(takes time.Duration, b ...byte) {
	d.write(b...)
	d.sleep(takes)
}

func (d *i2cChip) readFrom(register byte, b []byte) { d.transfer([]byte{register}, b) }

func (d *i2cChip) readByte(register byte) byte {
	var b [1]byte
	d.readFrom(register, b[:])
	return b[0]
}

func (d *i2cChip) readWord(register byte) uint16 {
	var b [2]byte
	d.readFrom(register, b[:])
	return binary.BigEndian.Uint16(b[:])
}

func (d *i2cChip) writeWord(register byte, word uint16) {
	d.write(register, byte(word>>8), byte(word))
}

// readSteady is readFrom for measurements. Bits that are all zeros or all ones are read once more,
// because a transfer reads them while the data line is held low or released.
func (d *i2cChip) readSteady(register byte, b []byte) {
	d.readFrom(register, b)
	if uniform(b) {
		d.readFrom(register, b)
	}
}

// readWordTwice is readTwice for one word.
func (d *i2cChip) readWordTwice(register byte) uint16 {
	var b [2]byte
	d.readTwice(register, b[:])
	return binary.BigEndian.Uint16(b[:])
}

// readTwice reads registers that seldom change, such as a calibration or an average, until two
// readings agree.
func (d *i2cChip) readTwice(register byte, b []byte) {
	d.readFrom(register, b)
	for range 3 {
		last := slices.Clone(b)
		if d.readFrom(register, b); slices.Equal(b, last) {
			return
		}
	}
	d.fail(errors.New("its values differ at each read; the wires are too long or disturbed"))
}

// uniform reports whether all bits of b are the same.
func uniform(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] || c != 0 && c != 0xFF })
}

// checkID reads a register of one byte that has to be id.
func (d *i2cChip) checkID(register, id byte) {
	if got := d.readByte(register); got != id {
		d.fail(d.otherChip(uint16(got), uint16(id)))
	}
}

// checkWord reads a register of one word whose bits in mask have to be those of want.
func (d *i2cChip) checkWord(register byte, mask, want uint16) {
	if got := d.readWord(register); got&mask != want&mask {
		d.fail(d.otherChip(got, want))
	}
}

// checkSettings is checkWord for settings that were written before: a chip that lost its
// supply has others.
func (d *i2cChip) checkSettings(register byte, mask, want uint16) {
	if d.readWord(register)&mask != want&mask {
		d.fail(errSettings)
	}
}

// otherChip returns the fault of a chip with the ID got instead of want.
func (d *i2cChip) otherChip(got, want uint16) error {
	return device.Faultf(device.Invalid, "at %#02x on %s is no %s: its id is %#02x, not %#02x; check the chip and its address", d.at.Address, d.at.Bus, d.model, got, want)
}

// errCRC is of an answer that was changed on its way.
var errCRC = errors.New("wrong CRC; the wires are too long or disturbed")

// words writes a command, waits for the time that the chip takes, and reads n words of 16 bits.
// Each has a CRC, as Sensirion's chips and some of Texas Instruments' send them.
func (d *i2cChip) words(command []byte, takes time.Duration, n int) []uint16 {
	d.command(takes, command...)
	raw, all := make([]byte, 3*n), make([]uint16, n)
	d.transfer(nil, raw)
	for i := range all {
		word := raw[3*i : 3*i+3]
		if board.CRC8(word[:2]) != word[2] {
			d.fail(errCRC)
		}
		all[i] = binary.BigEndian.Uint16(word)
	}
	return all
}

// share is a word as a part of the whole range, 0 to 1.
func share(word uint16) float64 { return float64(word) / 0xFFFF }
