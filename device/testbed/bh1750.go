package testbed

import (
	"encoding/binary"
	"math"
	"time"
)

// BH1750 emulates Rohm's light sensor (BH1750FVI, rev. D). A measurement takes the
// datasheet's time.
type BH1750 struct {
	inputs
	on    bool
	mode  byte // of the running measurement; 0 for none
	time  byte // MTreg
	data  uint16
	ready time.Time
}

// NewBH1750 returns a sensor with the input illuminance, in lx.
func NewBH1750() *BH1750 { return &BH1750{inputs: inputs{"illuminance": 100}} }

func (c *BH1750) Reset() { c.on, c.mode, c.time, c.data = false, 0, 69, 0 }

func (c *BH1750) Write(b []byte) {
	c.finishConversion()
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
			c.ready = time.Now().Add(c.conversionTime())
		}
	}
}

// conversionTime returns the typical time of a measurement: 120 ms, or 16 ms in the
// low-resolution mode, at the default MTreg. The maximum is 1.5 times that, but Linux does
// not wait so long.
func (c *BH1750) conversionTime() time.Duration {
	usual := 120 * time.Millisecond
	if c.mode&3 == 3 {
		usual = 16 * time.Millisecond
	}
	return usual * time.Duration(c.time) / 69
}

// finishConversion stores the result of a measurement whose time is over.
func (c *BH1750) finishConversion() {
	if c.mode != 0 && !time.Now().Before(c.ready) {
		counts := c.inputs["illuminance"] * 1.2 * float64(c.time) / 69
		if c.mode&3 == 1 {
			counts *= 2
		}
		c.data = uint16(min(math.Round(counts), 65535))
		if c.mode&0x20 != 0 { // one-time mode: power down
			c.on, c.mode = false, 0
		}
	}
}

func (c *BH1750) Read(b []byte) {
	c.finishConversion()
	var word [2]byte
	binary.BigEndian.PutUint16(word[:], c.data)
	for i := range b {
		b[i] = word[i%2]
	}
}
