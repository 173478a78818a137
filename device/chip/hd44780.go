package chip

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// hd44780Config is the YAML of hd44780: a display of characters behind a PCF8574, as
// it is sold with a small board on its back.
//
// periph's adapter is not used: it needs pins of the processor, each behind its own interface,
// which over I2C takes ten transfers for a character.
type hd44780Config struct {
	board.I2C
	Columns int `json:"columns" jsonschema:"the characters in a line, 8 to 20"`
	Rows    int `json:"rows" jsonschema:"the lines, 1, 2 or 4"`
}

// Hitachi HD44780U, ADE-207-272(Z), table 6 and figure 24, and how the PCF8574 is
// wired to it: the data are its upper four pins.
const (
	hd44780Character = 0x01 // RS: the byte is a character, not a command
	hd44780Enable    = 0x04 // its end takes the data over
	hd44780Light     = 0x08
	hd44780Wake      = 5 * time.Millisecond // 4.1 ms after the first reset, 0.1 ms after the next
)

// Validate finds mistakes without hardware.
func (c *hd44780Config) Validate() error {
	switch {
	case c.Columns < 8 || c.Columns > 20:
		return device.Faultf(device.Invalid, "columns: this display has 8 to 20 characters in a line, not %d", c.Columns)
	case c.Rows != 1 && c.Rows != 2 && c.Rows != 4:
		return device.Faultf(device.Invalid, "rows: this display has 1, 2 or 4 lines, not %d", c.Rows)
	}
	return c.I2C.Validate()
}

// Describe needs no hardware.
func (c *hd44780Config) Describe() device.Description {
	return device.Description{Model: "HD44780", Points: textPoint(fmt.Sprintf("a display of %d lines of %d characters", c.Rows, c.Columns))}
}

// Open makes the display dark.
func (c *hd44780Config) Open(ctx context.Context) (device.Device, error) {
	dev := newI2CChip(c.I2C, "HD44780")
	h := &hd44780{dev: dev, columns: c.Columns, rows: c.Rows}
	chip := managedChip{desc: c.Describe(), on: dev, setUp: func() error { return h.write(nil, 0) }}
	return openDisplay(ctx, chip, wrapped(c.Columns, c.Rows), func(lines []string) error { return h.write(lines, hd44780Light) })
}

// hd44780 is the chip.
type hd44780 struct {
	dev           *i2cChip
	columns, rows int
}

// write fills all lines. Whatever state it is in, half a character included, the
// chip is made to take four bits at a time first.
func (h *hd44780) write(lines []string, light byte) error {
	for range 3 {
		h.dev.command(hd44780Wake, nibble(nil, 0x30|light)...)
	}
	b := nibble(nil, 0x20|light)
	b = octet(b, 0x28, light) // four bits, two lines
	b = octet(b, 0x06, light) // from left to right
	b = octet(b, 0x0C, light) // on, without a cursor
	h.dev.write(b...)
	for row := range h.rows {
		var line string
		if row < len(lines) {
			line = lines[row]
		}
		b := octet(nil, 0x80|[]byte{0x00, 0x40, byte(h.columns), 0x40 + byte(h.columns)}[row], light)
		for _, c := range []byte(line + strings.Repeat(" ", h.columns-len(line))) {
			b = octet(b, hd44780Code(c), light|hd44780Character)
		}
		h.dev.write(b...)
	}
	return h.dev.err
}

// hd44780Code is a character of folded text in the chip's own set (table 4, A00),
// which has other signs in two places of ASCII.
func hd44780Code(c byte) byte {
	switch c {
	case degree:
		return 0xDF
	case '\\':
		return '/'
	case '~':
		return '-'
	}
	return c
}

// octet appends the writes that transfer a byte, its upper half first. The chip processes it in 37
// µs, less than the next byte takes on the wire.
func octet(b []byte, value, with byte) []byte {
	return nibble(nibble(b, value&0xF0|with), value<<4|with)
}

func nibble(b []byte, pins byte) []byte { return append(b, pins|hd44780Enable, pins) }
