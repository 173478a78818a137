package testbed

// PCF8574 emulates NXP's I/O expander with eight lines (rev. 5). Each written byte sets
// the pins, so that a careless scan switches them.
type PCF8574 struct {
	inputs
	pins byte // 1 is a weak high, and an input
}

// NewPCF8574 returns an expander whose lines are high at power-on. The input low is a bit
// mask of the lines that are pulled down from outside.
func NewPCF8574() *PCF8574 { return &PCF8574{inputs: inputs{"low": 0}} }

func (c *PCF8574) Reset() { c.pins = 0xff }

func (c *PCF8574) Write(b []byte) { c.pins = b[len(b)-1] }

func (c *PCF8574) Read(b []byte) {
	for i := range b {
		b[i] = c.pins &^ byte(c.inputs["low"])
	}
}

func (c *PCF8574) Outputs() any { return map[string]byte{"pins": c.pins} }

// MCP4725 emulates Microchip's digital-to-analog converter (DS22039, section 6). Its
// outputs are the present code and the one in EEPROM.
type MCP4725 struct {
	inputs
	out, eeprom        uint16
	power, eepromPower byte
}

// NewMCP4725 returns a converter at half of its supply, the factory setting.
func NewMCP4725() *MCP4725 { return &MCP4725{inputs: inputs{}, eeprom: 2048} }

func (c *MCP4725) Reset() { c.out, c.power = c.eeprom, c.eepromPower }

func (c *MCP4725) Write(b []byte) {
	for len(b) > 0 {
		switch {
		case b[0]&0xc0 == 0 && len(b) >= 2: // fast mode
			c.power, c.out = b[0]>>4&3, uint16(b[0]&0xf)<<8|uint16(b[1])
			b = b[2:]
		case b[0]&0xc0 == 0x40 && len(b) >= 3:
			c.power, c.out = b[0]>>1&3, uint16(b[1])<<4|uint16(b[2])>>4
			if b[0]&0x20 != 0 {
				c.eepromPower, c.eeprom = c.power, c.out
			}
			b = b[3:]
		default:
			return // an incomplete command has no effect
		}
	}
}

func (c *MCP4725) Read(b []byte) {
	all := [5]byte{0xc0 | c.power<<1, byte(c.out >> 4), byte(c.out << 4), c.eepromPower<<5 | byte(c.eeprom>>8), byte(c.eeprom)}
	for i := range b {
		b[i] = all[i%len(all)]
	}
}

// GeneralCall resets the chip at command 6 (section 7.3.1).
func (c *MCP4725) GeneralCall(b []byte) {
	if b[0] == 6 {
		c.Reset()
	}
}

func (c *MCP4725) Outputs() any { return map[string]uint16{"out": c.out, "eeprom": c.eeprom} }
