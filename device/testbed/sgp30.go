package testbed

import (
	"encoding/binary"
	"math"
	"time"
)

// SGP30 is Sensirion's sensor of gases (datasheet, version 1.0, section 6.3). It has
// begun to measure only once it was told to; before, and for 15 s after, it says 400
// and 0. It has a baseline after an hour.
type SGP30 struct {
	told
	begun  time.Time // zero for not at all
	answer []byte
}

// NewSGP30 measures an equivalent of carbon dioxide in ppm and vapours in ppb.
func NewSGP30() *SGP30 {
	return &SGP30{told: told{"concentration_co2": 450, "concentration_voc": 12}}
}

const (
	sgpWarm   = 15 * time.Second
	sgpLearns = time.Hour
)

func (c *SGP30) Reset() { c.begun, c.answer = time.Time{}, nil }

func (c *SGP30) Write(b []byte) {
	c.answer = nil
	if len(b) < 2 {
		return
	}
	since := func(d time.Duration) bool { return !c.begun.IsZero() && time.Since(c.begun) >= d }
	switch binary.BigEndian.Uint16(b) {
	case 0x2003:
		c.begun = time.Now()
	case 0x2008:
		co2, voc := 400.0, 0.0
		if since(sgpWarm) {
			co2, voc = c.told["concentration_co2"], c.told["concentration_voc"]
		}
		c.say(uint16(math.Round(co2)), uint16(math.Round(voc)))
	case 0x2015:
		if since(sgpLearns) {
			c.say(0x8a1c, 0x8f41)
		} else {
			c.say(0, 0)
		}
	case 0x202f:
		c.say(0x0022)
	}
}

func (c *SGP30) say(words ...uint16) {
	for _, w := range words {
		two := binary.BigEndian.AppendUint16(nil, w)
		c.answer = append(append(c.answer, two...), sgpCRC(two))
	}
}

func (c *SGP30) Read(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
	copy(b, c.answer)
}

// sgpCRC is x^8+x^5+x^4+1 from 0xff (section 6.6).
func sgpCRC(b []byte) byte {
	crc := byte(0xff)
	for _, c := range b {
		crc ^= c
		for range 8 {
			high := crc&0x80 != 0
			if crc <<= 1; high {
				crc ^= 0x31
			}
		}
	}
	return crc
}
