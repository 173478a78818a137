package chip

import (
	"context"

	"agentsite/device"
	"agentsite/device/board"

	"golang.org/x/image/font/basicfont"
)

// ssd1306Config is the YAML of ssd1306.
//
// periph's adapter is not used. It supports one address only, and treats an image whose transfer
// failed as shown, so that the next image omits parts.
type ssd1306Config struct {
	board.I2C
	Height  int  `json:"height" jsonschema:"the lines of dots, 64 or 32; it is 128 wide"`
	Rotated bool `json:"rotated,omitempty" jsonschema:"on where the display is mounted upside down"`
}

// Solomon Systech SSD1306, revision 1.1. The characters have 7 times 13 dots.
const (
	ssd1306Width    = 128
	ssd1306Commands = 0x00 // what follows, to the end of the transfer
	ssd1306Data     = 0x40
)

// Validate finds mistakes without hardware.
func (c *ssd1306Config) Validate() error {
	if c.Height != 64 && c.Height != 32 {
		return device.Faultf(device.Invalid, "height: an SSD1306 has 64 or 32 lines of dots, not %d", c.Height)
	}
	return c.I2C.Validate()
}

// Describe needs no hardware.
func (c *ssd1306Config) Describe() device.Description {
	return device.Description{Model: "SSD1306", Points: textPoint("a small display of light")}
}

// Open makes the display dark.
func (c *ssd1306Config) Open(ctx context.Context) (device.Device, error) {
	dev := newI2CChip(c.I2C, "SSD1306")
	s := &ssd1306{dev: dev, pages: c.Height / 8, rotated: c.Rotated}
	columns, rows := ssd1306Width/basicfont.Face7x13.Advance, c.Height/basicfont.Face7x13.Height
	return openDisplay(ctx, managedChip{desc: c.Describe(), on: dev, setUp: s.dark}, wrapped(columns, rows), s.show)
}

// ssd1306 is the chip.
type ssd1306 struct {
	dev     *i2cChip
	pages   int // eight lines of dots each
	rotated bool
}

// settings returns the datasheet's commands for a panel with a charge pump (application note, 2).
// The first and the last, which switch it off and on, are left out.
func (s *ssd1306) settings() []byte {
	segments, commons, wiring := byte(0xA1), byte(0xC8), byte(0x12)
	if s.rotated {
		segments, commons = 0xA0, 0xC0
	}
	if s.pages == 4 {
		wiring = 0x02 // its rows are wired one after the other
	}
	return []byte{
		ssd1306Commands,
		0xA8, byte(8*s.pages - 1), // rows
		0xD3, 0x00, 0x40, // the first row is row 0
		segments, commons, 0xDA, wiring,
		0x81, 0xFF, // contrast
		0xA4, 0xA6, // show the memory, 1 is light
		0xD5, 0x80, // clock
		0x8D, 0x14, // charge pump on
		0xD9, 0xF1, 0xDB, 0x40, // precharge and deselect level for that
		0x2E,       // no scrolling
		0x20, 0x02, // memory by pages
	}
}

// dark clears the memory and switches the panel off.
func (s *ssd1306) dark() error {
	return s.draw(make([]byte, ssd1306Width*s.pages), 0xAE)
}

func (s *ssd1306) show(lines []string) error {
	dots := make([]byte, ssd1306Width*s.pages)
	for row, line := range lines {
		for column := range len(line) {
			glyph(dots, column*basicfont.Face7x13.Advance, row*basicfont.Face7x13.Height, line[column])
		}
	}
	return s.draw(dots, 0xAF)
}

// draw writes the settings, the dots, each byte eight of them below each other, and
// then the last command.
func (s *ssd1306) draw(dots []byte, last byte) error {
	s.dev.write(s.settings()...)
	for page := range s.pages {
		s.dev.write(ssd1306Commands, 0xB0|byte(page), 0x00, 0x10)
		line := dots[page*ssd1306Width : (page+1)*ssd1306Width]
		s.dev.write(append([]byte{ssd1306Data}, line...)...)
	}
	s.dev.write(ssd1306Commands, last)
	return s.dev.err
}

// degreeDots is the sign that the font lacks, a line of dots in each byte.
var degreeDots = []byte{0, 0, 0b00110, 0b01001, 0b01001, 0b00110}

// glyph draws a character of folded text with its upper left corner at x and y.
func glyph(dots []byte, x, y int, c byte) {
	face := basicfont.Face7x13
	for dy := range face.Height {
		for dx := range face.Width {
			var lit bool
			if c == degree {
				lit = dy < len(degreeDots) && degreeDots[dy]>>dx&1 != 0
			} else {
				_, _, _, alpha := face.Mask.At(dx, int(c-' ')*face.Height+dy).RGBA()
				lit = alpha != 0
			}
			if lit {
				dots[(y+dy)/8*ssd1306Width+x+dx] |= 1 << ((y + dy) % 8)
			}
		}
	}
}
