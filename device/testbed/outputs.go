package testbed

// PCF8574 is NXP's eight lines on I2C (rev. 5): a written byte is the state of its
// pins, so that whoever asks it carelessly switches them.
type PCF8574 struct {
	told      // the lines that something outside pulls down
	pins byte // 1 is a weak high, and an input
}

// NewPCF8574 has eight lines, all of them high at power-on. low says which of them
// are held down from outside, as bits.
func NewPCF8574() *PCF8574 { return &PCF8574{told: told{"low": 0}} }

func (c *PCF8574) Reset() { c.pins = 0xff }

func (c *PCF8574) Write(b []byte) { c.pins = b[len(b)-1] }

func (c *PCF8574) Read(b []byte) {
	for i := range b {
		b[i] = c.pins &^ byte(c.told["low"])
	}
}

func (c *PCF8574) Show() any { return map[string]byte{"pins": c.pins} }

// MCP4725 is Microchip's converter to a voltage (DS22039, section 6). What it keeps
// for the next power-on is shown beside what it puts out.
type MCP4725 struct {
	told
	out, kept      uint16
	power, keptPow byte
}

// NewMCP4725 puts out half of its supply, as it comes from the factory.
func NewMCP4725() *MCP4725 { return &MCP4725{told: told{}, kept: 2048} }

func (c *MCP4725) Reset() { c.out, c.power = c.kept, c.keptPow }

func (c *MCP4725) Write(b []byte) {
	for len(b) > 0 {
		switch {
		case b[0]&0xc0 == 0 && len(b) >= 2: // the fast way
			c.power, c.out = b[0]>>4&3, uint16(b[0]&0xf)<<8|uint16(b[1])
			b = b[2:]
		case b[0]&0xc0 == 0x40 && len(b) >= 3:
			c.power, c.out = b[0]>>1&3, uint16(b[1])<<4|uint16(b[2])>>4
			if b[0]&0x20 != 0 {
				c.keptPow, c.kept = c.power, c.out
			}
			b = b[3:]
		default:
			return // a part of a command does nothing
		}
	}
}

func (c *MCP4725) Read(b []byte) {
	all := [5]byte{0xc0 | c.power<<1, byte(c.out >> 4), byte(c.out << 4), c.keptPow<<5 | byte(c.kept>>8), byte(c.kept)}
	for i := range b {
		b[i] = all[i%len(all)]
	}
}

// GeneralCall: 6 is a reset (section 7.3.1).
func (c *MCP4725) GeneralCall(b []byte) {
	if b[0] == 6 {
		c.Reset()
	}
}

func (c *MCP4725) Show() any { return map[string]uint16{"out": c.out, "kept": c.kept} }
