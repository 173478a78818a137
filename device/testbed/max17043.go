package testbed

import (
	"math"
	"time"
)

// MAX17043 emulates Maxim's fuel gauge of one lithium cell (19-4811, "Registers" and "ADC conversion"). Its
// model is not emulated: the charge is an input, as of a cell at rest.
type MAX17043 struct {
	inputs
	reg             map[byte]uint16
	pointer         byte
	measured, known time.Time // ends of the first conversion and of the first estimate after power-on
}

// NewMAX17043 returns a gauge with the inputs voltage in V and charge in %.
func NewMAX17043() *MAX17043 { return &MAX17043{inputs: inputs{"voltage": 3.9, "charge": 80}} }

const (
	gaugeConversion = 125 * time.Millisecond
	gaugeEstimate   = 250 * time.Millisecond
	gaugeCommand    = 0xFE
)

func (c *MAX17043) Reset() {
	c.pointer = 0
	c.reg = map[byte]uint16{0x08: 0x0003, 0x0C: 0x971C}
	c.measured, c.known = time.Now().Add(gaugeConversion), time.Now().Add(gaugeEstimate)
}

// Write selects a register, and writes words to those that can be written.
func (c *MAX17043) Write(b []byte) {
	c.pointer = b[0]
	for at := 1; at+1 < len(b); at += 2 {
		word := uint16(b[at])<<8 | uint16(b[at+1])
		switch register := b[0] + byte(at-1); {
		case register == 0x0C:
			c.reg[register] = word
		case register == gaugeCommand && word == 0x5400:
			c.Reset()
			return
		}
	}
}

// Read reads on over the registers, the high byte of each word first.
func (c *MAX17043) Read(b []byte) {
	for i := range b {
		word := c.word(c.pointer &^ 1)
		if b[i] = byte(word >> 8); c.pointer&1 != 0 {
			b[i] = byte(word)
		}
		c.pointer++
	}
}

func (c *MAX17043) word(register byte) uint16 {
	now := time.Now()
	switch {
	case register == 0x02 && !now.Before(c.measured):
		return uint16(math.Round(min(max(c.inputs["voltage"], 0), 4095*1.25e-3)/1.25e-3)) << 4
	case register == 0x04 && !now.Before(c.known):
		return uint16(math.Round(min(max(c.inputs["charge"], 0), 255) * 256))
	}
	return c.reg[register]
}
