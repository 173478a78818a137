package testbed

import (
	"encoding/binary"
	"math"
	"sort"
	"time"
)

// BME280 emulates Bosch's sensor of temperature, humidity and pressure
// (BST-BME280-DS002, sections 4 and 5). Inputs become raw values by the inverse of the
// datasheet's formulas, with the trimming values of its example. A measurement is started
// by a command and takes the datasheet's time; before the first the data is 0x80000.
type BME280 struct {
	inputs
	trimH   [6]int64
	reg     [256]byte
	pointer byte
	humid   byte      // ctrl_hum when ctrl_meas was last written
	ready   time.Time // end of the running measurement; zero for none
}

// NewBME280 returns a sensor with the inputs temperature in °C, humidity in % and pressure
// in Pa.
func NewBME280() *BME280 { return NewBME280Of(bmeH) }

// NewBME280Of returns a sensor with the trimming values dig_H1 to dig_H6 of the humidity.
// dig_H4 and dig_H5 have 12 bits and a sign.
func NewBME280Of(humidity [6]int64) *BME280 {
	return &BME280{inputs: inputs{"temperature": 20, "humidity": 50, "pressure": 101325}, trimH: humidity}
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

// Trimming values: T and P of the example in BST-BMP280-DS001, section 3.12, H of a real
// part.
var (
	bmeT = [3]int64{27504, 26435, -1000}
	bmeP = [9]int64{36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000}
	bmeH = [6]int64{75, 362, 0, 313, 50, 30}
)

func (c *BME280) Reset() {
	*c = BME280{inputs: c.inputs, trimH: c.trimH}
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

// Raw values of skipped measurements.
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

// Write takes pairs of a register and its value; a register alone sets the start of the
// next read (section 6.2.1).
func (c *BME280) Write(b []byte) {
	c.pointer = b[0]
	for ; len(b) >= 2; b = b[2:] {
		c.set(b[0], b[1])
	}
}

func (c *BME280) set(reg, v byte) {
	c.finishConversion()
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
		c.reg[reg], c.humid = v, c.reg[bmeHum] // ctrl_hum takes effect now
		c.ready = time.Time{}
		if v&3 != 0 {
			c.ready = time.Now().Add(c.conversionTime())
		}
	}
}

// conversionTime returns the maximal time of a measurement (section 9.1).
func (c *BME280) conversionTime() time.Duration {
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

// finishConversion stores the result of a measurement whose time is over. In normal mode
// each call measures again.
func (c *BME280) finishConversion() {
	if c.ready.IsZero() || time.Now().Before(c.ready) {
		return
	}
	c.measure()
	if c.reg[bmeMeas]&3 != 3 { // forced mode: return to sleep
		c.ready = time.Time{}
		c.reg[bmeMeas] &^= 3
	}
}

func (c *BME280) Read(b []byte) {
	c.finishConversion()
	c.reg[bmeStatus] = 0
	if time.Now().Before(c.ready) {
		c.reg[bmeStatus] = 8
	}
	for i := range b {
		b[i] = c.reg[c.pointer]
		c.pointer++
	}
}

// measure computes the raw values of the inputs, for the enabled measurements.
func (c *BME280) measure() {
	const most = 1<<20 - 1
	want := int64(math.Round(c.inputs["temperature"] * 100))
	t := sort.Search(most, func(raw int) bool { return (bmeFine(int64(raw))*5+128)>>8 >= want })
	fine := bmeFine(int64(t))
	pressure, humidity, temperature := skipped, skippedHumidity, skipped
	if c.reg[bmeMeas]>>5 != 0 {
		temperature = t
	}
	if c.reg[bmeMeas]>>2&7 != 0 {
		pressure = sort.Search(most, func(raw int) bool { // it falls as the raw value rises
			return bmePressure(int64(raw), fine) <= c.inputs["pressure"]
		})
	}
	if c.humid&7 != 0 {
		humidity = sort.Search(1<<16-1, func(raw int) bool { return c.percent(int64(raw), fine) >= c.inputs["humidity"] })
	}
	c.put(pressure, temperature, humidity)
}

// bmeFine returns t_fine, the temperature in 1/5120 °C that the other formulas use, by the
// datasheet's integer formula (section 4.2.3).
func bmeFine(raw int64) int64 {
	a := (raw>>3 - bmeT[0]<<1) * bmeT[1] >> 11
	b := raw>>4 - bmeT[0]
	return a + b*b>>12*bmeT[2]>>14
}

// The other formulas are the floating-point ones (section 8.1), without their limits of the
// humidity, so that 0 % has a raw value.

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
