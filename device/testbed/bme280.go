package testbed

import (
	"encoding/binary"
	"math"
	"sort"
	"time"
)

// BME280 is Bosch's sensor of temperature, humidity and pressure (BST-BME280-DS002,
// sections 4 and 5). It has the trimming values of the datasheet's example, so that
// what it is told is worked back to raw values by the datasheet's own formulas. It
// measures when it is told to, takes the time, and shows 0x80000 before.
type BME280 struct {
	told
	trimH   [6]int64
	reg     [256]byte
	pointer byte
	humid   byte      // ctrl_hum as it was when ctrl_meas was last written
	ready   time.Time // when the measurement under way ends; zero for none
}

// NewBME280 measures temperature in °C, humidity in % and pressure in Pa.
func NewBME280() *BME280 { return NewBME280Of(bmeH) }

// NewBME280Of is a chip with these trimming values dig_H1 to dig_H6 of its humidity.
// dig_H4 and dig_H5 have 12 bits and a sign.
func NewBME280Of(humidity [6]int64) *BME280 {
	return &BME280{told: told{"temperature": 20, "humidity": 50, "pressure": 101325}, trimH: humidity}
}

const (
	bmeID     = 0xd0
	bmeReset  = 0xe0
	bmeHum    = 0xf2
	bmeStatus = 0xf3
	bmeMeas   = 0xf4
	bmeConfig = 0xf5
	bmeData   = 0xf7
)

// Trimming values: T and P as in the example of BST-BMP280-DS001, section 3.12, H
// as parts in the wild have them.
var (
	bmeT = [3]int64{27504, 26435, -1000}
	bmeP = [9]int64{36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000}
	bmeH = [6]int64{75, 362, 0, 313, 50, 30}
)

func (c *BME280) Reset() {
	*c = BME280{told: c.told, trimH: c.trimH}
	c.reg[bmeID] = 0x60
	at := 0x88
	for _, trim := range [][]int64{bmeT[:], bmeP[:]} {
		for _, v := range trim {
			binary.LittleEndian.PutUint16(c.reg[at:], uint16(v))
			at += 2
		}
	}
	h := c.trimH
	c.reg[0xa1] = byte(h[0])
	binary.LittleEndian.PutUint16(c.reg[0xe1:], uint16(h[1]))
	c.reg[0xe3] = byte(h[2])
	c.reg[0xe4], c.reg[0xe5], c.reg[0xe6] = byte(h[3]>>4), byte(h[3]&0xf|h[4]&0xf<<4), byte(h[4]>>4)
	c.reg[0xe7] = byte(h[5])
	c.put(skipped, skipped, skippedHumidity)
}

// Values of quantities that were not measured.
const (
	skipped         = 0x80000
	skippedHumidity = 0x8000
)

func (c *BME280) put(pressure, temperature, humidity int) {
	for at, v := range map[int]int{bmeData: pressure, bmeData + 3: temperature} {
		c.reg[at], c.reg[at+1], c.reg[at+2] = byte(v>>12), byte(v>>4), byte(v<<4)
	}
	binary.BigEndian.PutUint16(c.reg[bmeData+6:], uint16(humidity))
}

// Write takes pairs of a register and its value; a register alone is where the next
// read begins (section 6.2.1).
func (c *BME280) Write(b []byte) {
	c.pointer = b[0]
	for ; len(b) >= 2; b = b[2:] {
		c.set(b[0], b[1])
	}
}

func (c *BME280) set(reg, v byte) {
	c.settle()
	switch reg {
	case bmeReset:
		if v == 0xb6 {
			c.Reset()
		}
	case bmeHum:
		c.reg[reg] = v & 7
	case bmeConfig:
		c.reg[reg] = v
	case bmeMeas:
		c.reg[reg], c.humid = v, c.reg[bmeHum] // only now is ctrl_hum obeyed
		c.ready = time.Time{}
		if v&3 != 0 {
			c.ready = time.Now().Add(c.length())
		}
	}
}

// length is the longest that a measurement takes (section 9.1).
func (c *BME280) length() time.Duration {
	samples := func(code byte) float64 {
		if code &= 7; code != 0 {
			return float64(int(1) << (min(code, 5) - 1))
		}
		return 0
	}
	ms := 1.25 + 2.3*samples(c.reg[bmeMeas]>>5)
	for _, code := range []byte{c.reg[bmeMeas] >> 2, c.humid} {
		if n := samples(code); n > 0 {
			ms += 2.3*n + 0.575
		}
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// settle takes in a measurement that has ended. In normal mode there is always a
// newer one.
func (c *BME280) settle() {
	if c.ready.IsZero() || time.Now().Before(c.ready) {
		return
	}
	c.measure()
	if c.reg[bmeMeas]&3 != 3 { // forced: once, and back to sleep
		c.ready = time.Time{}
		c.reg[bmeMeas] &^= 3
	}
}

func (c *BME280) Read(b []byte) {
	c.settle()
	c.reg[bmeStatus] = 0
	if time.Now().Before(c.ready) {
		c.reg[bmeStatus] = 8
	}
	for i := range b {
		b[i] = c.reg[c.pointer]
		c.pointer++
	}
}

// measure works back from what the chip is told, for what is switched on.
func (c *BME280) measure() {
	const most = 1<<20 - 1
	want := int64(math.Round(c.told["temperature"] * 100))
	t := sort.Search(most, func(raw int) bool { return (bmeFine(int64(raw))*5+128)>>8 >= want })
	fine := bmeFine(int64(t))
	pressure, humidity, temperature := skipped, skippedHumidity, skipped
	if c.reg[bmeMeas]>>5 != 0 {
		temperature = t
	}
	if c.reg[bmeMeas]>>2&7 != 0 {
		pressure = sort.Search(most, func(raw int) bool { // it falls as the raw value rises
			return bmePressure(int64(raw), fine) <= c.told["pressure"]
		})
	}
	if c.humid&7 != 0 {
		humidity = sort.Search(1<<16-1, func(raw int) bool { return c.percent(int64(raw), fine) >= c.told["humidity"] })
	}
	c.put(pressure, temperature, humidity)
}

// bmeFine is the temperature in 1/5120 °C, as the other formulas need it, in the
// datasheet's integers (section 4.2.3): nobody computes it otherwise.
func bmeFine(raw int64) int64 {
	a := (raw>>3 - bmeT[0]<<1) * bmeT[1] >> 11
	b := raw>>4 - bmeT[0]
	return a + b*b>>12*bmeT[2]>>14
}

// The other formulas are the ones in floating point (section 8.1), without the bounds
// of the humidity: a chip at 0 % has the raw value of 0 %.

func bmePressure(raw, fine int64) float64 {
	var p [10]float64
	for i, v := range bmeP {
		p[i+1] = float64(v)
	}
	a := float64(fine)/2 - 64000
	b := a*a*p[6]/32768 + a*p[5]*2
	b = b/4 + p[4]*65536
	a = (p[3]*a*a/524288 + p[2]*a) / 524288
	a = (1 + a/32768) * p[1]
	out := (1048576 - float64(raw) - b/4096) * 6250 / a
	return out + (p[9]*out*out/2147483648+out*p[8]/32768+p[7])/16
}

func (c *BME280) percent(raw, fine int64) float64 {
	var h [7]float64
	for i, v := range c.trimH {
		h[i+1] = float64(v)
	}
	f := float64(fine) - 76800
	out := (float64(raw) - (h[4]*64 + h[5]/16384*f)) * (h[2] / 65536 * (1 + h[6]/67108864*f*(1+h[3]/67108864*f)))
	return out * (1 - h[1]*out/524288)
}
