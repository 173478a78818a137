package testbed

// SSD1306 emulates Solomon Systech's display controller for 128 by 64 pixels (rev. 1.1).
type SSD1306 struct {
	inputs
	memory           [8][128]byte // page, column
	on, inverted     bool
	contrast         byte
	mode             byte // of addressing: 0 horizontal, 1 vertical, 2 by page
	page, column     byte
	firstPage, last  byte
	firstCol, lastCo byte
	command          []byte // received bytes of an incomplete command
}

// NewSSD1306 returns a display that is off.
func NewSSD1306() *SSD1306 { return &SSD1306{inputs: inputs{}} }

// Reset keeps the memory: its content at power-on is not defined.
func (c *SSD1306) Reset() {
	*c = SSD1306{inputs: c.inputs, memory: c.memory, mode: 2, contrast: 0x7f, last: 7, lastCo: 127}
}

// Write takes a control byte and data. Bit 6 selects memory instead of commands; bit 7
// says that only one byte follows before the next control byte (section 8.1.5).
func (c *SSD1306) Write(b []byte) {
	for len(b) > 1 {
		control, n := b[0], len(b)-1
		if control&0x80 != 0 {
			n = 1
		}
		for _, v := range b[1 : 1+n] {
			if control&0x40 != 0 {
				c.put(v)
			} else {
				c.take(v)
			}
		}
		b = b[1+n:]
	}
}

// put writes a column of eight pixels, and advances to the next column.
func (c *SSD1306) put(v byte) {
	c.memory[c.page&7][c.column&127] = v
	switch c.mode {
	case 0:
		if c.column++; c.column > c.lastCo {
			c.column = c.firstCol
			c.nextPage()
		}
	case 1:
		if c.page == c.last {
			if c.column++; c.column > c.lastCo {
				c.column = c.firstCol
			}
		}
		c.nextPage()
	default:
		c.column = (c.column + 1) & 127
	}
}

func (c *SSD1306) nextPage() {
	if c.page++; c.page > c.last {
		c.page = c.firstPage
	}
}

// arguments returns the number of bytes that follow a command (table 9).
func arguments(command byte) int {
	switch command {
	case 0x20, 0x81, 0x8d, 0xa8, 0xd3, 0xd5, 0xd9, 0xda, 0xdb:
		return 1
	case 0x21, 0x22, 0xa3:
		return 2
	case 0x29, 0x2a:
		return 5
	case 0x26, 0x27:
		return 6
	}
	return 0
}

func (c *SSD1306) take(v byte) {
	c.command = append(c.command, v)
	op, args := c.command[0], c.command[1:]
	if len(args) < arguments(op) {
		return
	}
	c.command = nil
	switch {
	case op <= 0x0f:
		c.column = c.column&0xf0 | op
	case op <= 0x1f:
		c.column = c.column&0x0f | op<<4&0x70
	case op == 0x20:
		c.mode = args[0] & 3
	case op == 0x21:
		c.firstCol, c.lastCo = args[0]&127, args[1]&127
		c.column = c.firstCol
	case op == 0x22:
		c.firstPage, c.last = args[0]&7, args[1]&7
		c.page = c.firstPage
	case op == 0x81:
		c.contrast = args[0]
	case op == 0xa6, op == 0xa7:
		c.inverted = op == 0xa7
	case op == 0xae, op == 0xaf:
		c.on = op == 0xaf
	case op >= 0xb0 && op <= 0xb7:
		c.page = op & 7
	}
}

// Read returns the status byte: bit 6 while the display is off.
func (c *SSD1306) Read(b []byte) {
	for i := range b {
		b[i] = 0
		if !c.on {
			b[i] = 0x40
		}
	}
}

// Screen is the state of a display.
type Screen struct {
	On       bool   `json:"on"`
	Inverted bool   `json:"inverted"`
	Contrast byte   `json:"contrast"`
	Memory   []byte `json:"memory"` // eight pages of 128 columns; the lowest bit is the top pixel
}

func (c *SSD1306) Outputs() any {
	s := Screen{On: c.on, Inverted: c.inverted, Contrast: c.contrast}
	for _, page := range c.memory {
		s.Memory = append(s.Memory, page[:]...)
	}
	return s
}
