package testbed

// PCA9685 is NXP's sixteen channels of PWM (rev. 4, section 7). Until it is told
// otherwise it also answers at the address of all its kind, where a multiplexer
// may be expected.
type PCA9685 struct {
	told
	reg     [256]byte
	pointer byte
}

// NewPCA9685 has its outputs off.
func NewPCA9685() *PCA9685 { return &PCA9685{told: told{}} }

const (
	pcaMode1     = 0x00
	pcaAllCall   = 0x05
	pcaLED0      = 0x06
	pcaAllLED    = 0xfa
	pcaPrescale  = 0xfe
	pcaSleep     = 0x10
	pcaIncrement = 0x20
	pcaRestart   = 0x80
)

func (c *PCA9685) Reset() {
	*c = PCA9685{told: c.told}
	c.reg[pcaMode1], c.reg[1] = 0x11, 0x04
	c.reg[2], c.reg[3], c.reg[4], c.reg[pcaAllCall] = 0xe2, 0xe4, 0xe8, 0xe0
	for led := range 16 {
		c.reg[pcaLED0+4*led+3] = 0x10 // fully off
	}
	c.reg[pcaPrescale] = 0x1e // 200 Hz
}

func (c *PCA9685) AlsoAt(address byte) bool {
	return c.reg[pcaMode1]&1 != 0 && address == c.reg[pcaAllCall]>>1
}

// GeneralCall: 6 is a reset.
func (c *PCA9685) GeneralCall(b []byte) {
	if b[0] == 6 {
		c.Reset()
	}
}

func (c *PCA9685) Write(b []byte) {
	c.pointer = b[0]
	for _, v := range b[1:] {
		c.set(c.pointer, v)
		c.next()
	}
}

func (c *PCA9685) set(reg, v byte) {
	switch {
	case reg == pcaMode1:
		// Restart is cleared by writing 1; it is set when a running chip goes to sleep.
		restart := c.reg[pcaMode1] & pcaRestart &^ v
		if v&pcaSleep != 0 && c.reg[pcaMode1]&pcaSleep == 0 {
			restart = pcaRestart
		}
		c.reg[pcaMode1] = v&^pcaRestart | restart
	case reg == pcaPrescale:
		if c.reg[pcaMode1]&pcaSleep != 0 { // else it is refused
			c.reg[reg] = max(v, 3)
		}
	case reg >= pcaAllLED && reg < pcaPrescale:
		for led := range 16 {
			c.reg[pcaLED0+4*led+int(reg-pcaAllLED)] = v
		}
	default:
		c.reg[reg] = v
	}
}

// next goes to the next register if it is to, and from the last channel to the
// first register.
func (c *PCA9685) next() {
	if c.reg[pcaMode1]&pcaIncrement == 0 {
		return
	}
	if c.pointer++; c.pointer == 0x46 {
		c.pointer = 0
	}
}

func (c *PCA9685) Read(b []byte) {
	for i := range b {
		b[i] = c.reg[c.pointer]
		c.next()
	}
}

// PWM is what the outputs do.
type PWM struct {
	Hz float64     `json:"hz"` // 0 while the chip sleeps
	On [16]float64 `json:"on"` // how much of the time, 0 to 1
}

func (c *PCA9685) Show() any {
	var p PWM
	if c.reg[pcaMode1]&pcaSleep != 0 {
		return p
	}
	p.Hz = 25e6 / 4096 / (float64(c.reg[pcaPrescale]) + 1)
	for led := range p.On {
		r := c.reg[pcaLED0+4*led:]
		on, off := int(r[0])|int(r[1]&0xf)<<8, int(r[2])|int(r[3]&0xf)<<8
		switch {
		case r[3]&0x10 != 0: // fully off wins
		case r[1]&0x10 != 0:
			p.On[led] = 1
		default:
			p.On[led] = float64((off-on+4096)%4096) / 4096
		}
	}
	return p
}
