package testbed

import (
	"encoding/binary"
	"math"
	"time"
)

// BH1750 is Rohm's light sensor (BH1750FVI, rev. D). It takes the time that a
// measurement takes.
type BH1750 struct {
	told
	on    bool
	mode  byte // of the measurement under way, 0 for none
	time  byte // MTreg
	data  uint16
	ready time.Time
}

// NewBH1750 measures light in lx.
func NewBH1750() *BH1750 { return &BH1750{told: told{"illuminance": 100}} }

func (c *BH1750) Reset() { c.on, c.mode, c.time, c.data = false, 0, 69, 0 }

func (c *BH1750) Write(b []byte) {
	c.settle()
	for _, op := range b {
		switch {
		case op == 0x00:
			c.on, c.mode = false, 0
		case op == 0x01:
			c.on = true
		case op == 0x07 && c.on:
			c.data = 0
		case op&0xf8 == 0x40:
			c.time = c.time&0x1f | op<<5
		case op&0xe0 == 0x60:
			c.time = c.time&0xe0 | op&0x1f
		case op == 0x10, op == 0x11, op == 0x13, op == 0x20, op == 0x21, op == 0x23:
			c.on, c.mode = true, op
			c.ready = time.Now().Add(c.length())
		}
	}
}

// length is what a measurement takes as a rule, 120 ms, or 16 ms in the coarse mode,
// at the usual MTreg. It may take half as long again, but Linux does not wait so long.
func (c *BH1750) length() time.Duration {
	usual := 120 * time.Millisecond
	if c.mode&3 == 3 {
		usual = 16 * time.Millisecond
	}
	return usual * time.Duration(c.time) / 69
}

// settle takes in a measurement that has ended.
func (c *BH1750) settle() {
	if c.mode != 0 && !time.Now().Before(c.ready) {
		counts := c.told["illuminance"] * 1.2 * float64(c.time) / 69
		if c.mode&3 == 1 {
			counts *= 2
		}
		c.data = uint16(min(math.Round(counts), 65535))
		if c.mode&0x20 != 0 { // once, and then off
			c.on, c.mode = false, 0
		}
	}
}

func (c *BH1750) Read(b []byte) {
	c.settle()
	var word [2]byte
	binary.BigEndian.PutUint16(word[:], c.data)
	for i := range b {
		b[i] = word[i%2]
	}
}
