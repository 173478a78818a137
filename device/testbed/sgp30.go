package testbed

import (
	"encoding/binary"
	"math"
	"time"
)

// SGP30 emulates Sensirion's gas sensor (datasheet, version 1.0, section 6.3). It measures
// after a command; before, and for 15 s after, it returns 400 and 0. It has a baseline
// after an hour.
type SGP30 struct {
	inputs
	started  time.Time // zero before the command
	response []byte
}

// NewSGP30 returns a sensor with the inputs concentration_co2 in ppm and
// concentration_voc in ppb.
func NewSGP30() *SGP30 {
	return &SGP30{inputs: inputs{"concentration_co2": 450, "concentration_voc": 12}}
}

const (
	sgpWarm     = 15 * time.Second
	sgpBaseline = time.Hour
)

func (c *SGP30) Reset() { c.started, c.response = time.Time{}, nil }

func (c *SGP30) Write(b []byte) {
	c.response = nil
	if len(b) < 2 {
		return
	}
	since := func(d time.Duration) bool { return !c.started.IsZero() && time.Since(c.started) >= d }
	switch binary.BigEndian.Uint16(b) {
	case 0x2003:
		c.started = time.Now()
	case 0x2008:
		co2, voc := 400.0, 0.0
		if since(sgpWarm) {
			co2, voc = c.inputs["concentration_co2"], c.inputs["concentration_voc"]
		}
		c.respond(uint16(math.Round(co2)), uint16(math.Round(voc)))
	case 0x2015:
		if since(sgpBaseline) {
			c.respond(0x8a1c, 0x8f41)
		} else {
			c.respond(0, 0)
		}
	case 0x202f:
		c.respond(0x0022)
	}
}

func (c *SGP30) respond(words ...uint16) {
	for _, w := range words {
		two := binary.BigEndian.AppendUint16(nil, w)
		c.response = append(append(c.response, two...), sgpCRC(two))
	}
}

func (c *SGP30) Read(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
	copy(b, c.response)
}

// sgpCRC returns the CRC x^8+x^5+x^4+1 with the initial value 0xff (section 6.6).
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
