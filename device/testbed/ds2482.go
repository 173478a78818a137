package testbed

// DS2482 emulates Maxim's bridge from I2C to one 1-Wire line (DS2482-100, 19-4930). Each
// command completes at once, so that it is never busy.
type DS2482 struct {
	inputs
	line    []*DS18B20
	status  byte
	config  byte
	data    byte
	pointer byte
}

// NewDS2482 returns a bridge to these thermometers. With the input short set, the line is
// short-circuited to ground.
func NewDS2482(line ...*DS18B20) *DS2482 { return &DS2482{inputs: inputs{"short": 0}, line: line} }

// Bits of the status, and values of the read pointer.
const (
	dsPresence = 0x02
	dsShort    = 0x04
	dsLevel    = 0x08
	dsReset    = 0x10
	dsSingle   = 0x20
	dsTriplet  = 0x40
	dsTaken    = 0x80

	dsStatusAt = 0xf0
	dsDataAt   = 0xe1
	dsConfigAt = 0xc3
)

func (c *DS2482) Reset() { c.status, c.config, c.data, c.pointer = dsReset|dsLevel, 0, 0, dsStatusAt }

func (c *DS2482) Read(b []byte) {
	if c.status |= dsLevel; c.inputs["short"] != 0 {
		c.status &^= dsLevel
	}
	v := map[byte]byte{dsStatusAt: c.status, dsDataAt: c.data, dsConfigAt: c.config}[c.pointer]
	for i := range b {
		b[i] = v
	}
}

func (c *DS2482) Write(b []byte) {
	command, argument := b[0], byte(0)
	if len(b) > 1 {
		argument = b[1]
	}
	switch command {
	case 0xe1: // set read pointer
		if argument == dsStatusAt || argument == dsDataAt || argument == dsConfigAt {
			c.pointer = argument
		}
		return
	case 0xd2: // write configuration: the upper half is the complement of the lower
		if argument>>4 == ^argument&0xf {
			c.config, c.status, c.pointer = argument&0xf, c.status&^dsReset, dsConfigAt
		}
		return
	case 0xf0:
		c.Reset()
		return
	}
	c.pointer = dsStatusAt
	switch command {
	case 0xb4: // 1-Wire reset
		c.status &^= dsPresence | dsShort
		if c.inputs["short"] != 0 {
			c.status |= dsShort
			return
		}
		for _, d := range c.line {
			if d.reset() {
				c.status |= dsPresence
			}
		}
	case 0x87:
		c.single(c.slot(argument >> 7))
	case 0xa5:
		for i := range 8 {
			c.slot(argument >> i & 1)
		}
	case 0x96:
		c.data = 0
		for i := range 8 {
			c.data |= c.slot(1) << i
		}
	case 0x78: // triplet: two read slots, and one write slot
		own, opposite, taken := c.slot(1), c.slot(1), argument>>7
		if own != opposite {
			taken = own
		}
		if own == 1 && opposite == 1 { // no device responds
			taken = 1
		}
		c.slot(taken)
		c.single(own)
		c.status = c.status&^(dsTriplet|dsTaken) | opposite*dsTriplet | taken*dsTaken
	}
	c.config &^= 4 // the strong pull-up ends with the next command
}

func (c *DS2482) single(bit byte) { c.status = c.status&^dsSingle | bit*dsSingle }

// slot runs one time slot: the line is low if the master or any device pulls it low.
func (c *DS2482) slot(bit byte) byte {
	if c.inputs["short"] != 0 {
		return 0
	}
	for _, d := range c.line {
		bit &= d.level()
	}
	for _, d := range c.line {
		d.slot(bit)
	}
	return bit
}
