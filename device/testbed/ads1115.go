package testbed

import (
	"math"
	"time"
)

// ADS1115 emulates Texas Instruments' analog-to-digital converter (SBAS444, sections 7
// and 8). A conversion takes the datasheet's time.
type ADS1115 struct {
	inputs
	wordRegisters
	ready time.Time // end of the first running conversion; zero for none
}

// NewADS1115 returns a converter with the inputs in0 to in3, in V.
func NewADS1115() *ADS1115 {
	c := &ADS1115{inputs: inputs{"in0": 0, "in1": 0, "in2": 0, "in3": 0}}
	c.beforeRead = func(pointer byte) {
		c.finishConversion()
		if c.reg[1] &^= adsStart; c.ready.IsZero() {
			c.reg[1] |= adsStart // not converting
		}
	}
	c.afterWrite = func(pointer byte) {
		if pointer == 1 && (c.reg[1]&adsSingle == 0 || c.reg[1]&adsStart != 0) {
			c.ready = time.Now().Add(c.conversionTime())
		}
	}
	return c
}

const (
	adsStart  = 0x8000
	adsSingle = 0x0100
)

func (c *ADS1115) Reset() {
	c.pointer, c.ready = 0, time.Time{}
	c.reg = []uint16{0, 0x8583, 0x8000, 0x7fff}
}

// conversionTime returns the time of a conversion at the data rate (table 8).
func (c *ADS1115) conversionTime() time.Duration {
	perSecond := [8]time.Duration{8, 16, 32, 64, 128, 250, 475, 860}
	return time.Second / perSecond[c.reg[1]>>5&7]
}

// finishConversion stores the result of a conversion whose time is over.
func (c *ADS1115) finishConversion() {
	if c.ready.IsZero() || time.Now().Before(c.ready) {
		return
	}
	c.convert()
	if c.reg[1]&adsSingle != 0 {
		c.ready = time.Time{}
	}
}

// convert measures the multiplexer's selection at the range of the amplifier.
func (c *ADS1115) convert() {
	in := [4]float64{c.inputs["in0"], c.inputs["in1"], c.inputs["in2"], c.inputs["in3"]}
	pairs := [4][2]int{{0, 1}, {0, 3}, {1, 3}, {2, 3}}
	mux := c.reg[1] >> 12 & 7
	var volts float64
	if mux < 4 {
		volts = in[pairs[mux][0]] - in[pairs[mux][1]]
	} else {
		volts = in[mux-4]
	}
	full := [8]float64{6.144, 4.096, 2.048, 1.024, 0.512, 0.256, 0.256, 0.256}[c.reg[1]>>9&7]
	c.reg[0] = uint16(int16(min(max(math.Round(volts/full*32768), -32768), 32767)))
}
