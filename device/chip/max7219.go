package chip

import (
	"context"

	"agentsite/device"
	"agentsite/device/board"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
)

// max7219Config is the YAML of max7219, for digits of seven segments.
//
// periph's adapter is not used: it logs its errors and continues, and a text with an unknown
// character lights segments at random.
type max7219Config struct {
	board.SPI
	Digits     int `json:"digits" jsonschema:"how many digits it has, 1 to 8"`
	Brightness int `json:"brightness" jsonschema:"1 (dim) to 16"`
}

// Maxim MAX7219/MAX7221, 19-4452 (table 2).
const (
	max7219Decode   = 0x09 // 0: each bit is a segment
	max7219Dim      = 0x0A
	max7219Scan     = 0x0B
	max7219On       = 0x0C
	max7219Test     = 0x0F
	max7219Clock    = 5 * physic.MegaHertz // the chip takes 10, long wires do not
	max7219Position = 0x01                 // of the digit on the right
)

// Validate finds mistakes without hardware.
func (c *max7219Config) Validate() error {
	switch {
	case c.Digits < 1 || c.Digits > 8:
		return device.Faultf(device.Invalid, "digits: a MAX7219 drives 1 to 8, not %d", c.Digits)
	case c.Brightness < 1 || c.Brightness > 16:
		return device.Faultf(device.Invalid, "brightness: use 1 to 16, not %d", c.Brightness)
	}
	return c.SPI.Validate()
}

// Describe needs no hardware.
func (c *max7219Config) Describe() device.Description {
	return device.Description{Model: "MAX7219", Points: textPoint("a display of digits")}
}

// Open makes the display dark. Whether there is one cannot be asked.
func (c *max7219Config) Open(ctx context.Context) (device.Device, error) {
	conn := c.Conn(max7219Clock, spi.Mode0)
	m := max7219{conn, c}
	chip := managedChip{desc: c.Describe(), on: conn, setUp: func() error { return m.write("", 0) }}
	return openDisplay(ctx, chip, digits(c.Digits), func(lines []string) error { return m.write(lines[0], 1) })
}

// max7219 is the chip.
type max7219 struct {
	conn   *board.SPIConn
	config *max7219Config
}

// write writes the settings and all digits, and then switches on or off.
func (m max7219) write(segments string, on byte) error {
	commands := [][]byte{{max7219Test, 0}, {max7219Decode, 0}, {max7219Scan, byte(m.config.Digits - 1)}, {max7219Dim, byte(m.config.Brightness - 1)}}
	for i := range m.config.Digits {
		var digit byte
		if i < len(segments) {
			digit = segments[len(segments)-1-i]
		}
		commands = append(commands, []byte{max7219Position + byte(i), digit})
	}
	for _, c := range append(commands, []byte{max7219On, on}) {
		if err := m.conn.Tx(c, nil); err != nil {
			return err
		}
	}
	return nil
}
