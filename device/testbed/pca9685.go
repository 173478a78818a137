package testbed

// PCA9685 emulates NXP's PWM controller with sixteen channels (rev. 4, section 7). While
// ALLCALL is enabled, as after power-on, it also acknowledges 0x70, an address that
// multiplexers use.
type PCA9685 struct {
	inputs
	reg     [256]byte
	pointer byte
}

// NewPCA9685 returns a controller with its outputs off.
func NewPCA9685() *PCA9685 { return &PCA9685{inputs: inputs{}} }

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
	*c = PCA9685{inputs: c.inputs}
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

// GeneralCall resets the chip at command 6.
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
		// Restart is cleared by writing 1, and set when a running chip goes to sleep.
		restart := c.reg[pcaMode1] & pcaRestart &^ v
		if v&pcaSleep != 0 && c.reg[pcaMode1]&pcaSleep == 0 {
			restart = pcaRestart
		}
		c.reg[pcaMode1] = v&^pcaRestart | restart
	case reg == pcaPrescale:
		if c.reg[pcaMode1]&pcaSleep != 0 { // else it is ignored
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

// next increments the pointer if auto-increment is on, and wraps after the last channel.
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

// PWM is the state of the outputs.
type PWM struct {
	Hz float64     `json:"hz"` // 0 while the chip sleeps
	On [16]float64 `json:"on"` // duty cycle, 0 to 1
}

func (c *PCA9685) Outputs() any {
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
