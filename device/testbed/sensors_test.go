package testbed

import (
	"encoding/binary"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestTMP102 uses the datasheet's tables 2 and 3.
func TestTMP102(t *testing.T) { synctest.Test(t, testTMP102) }

func testTMP102(t *testing.T) {
	r := newRig(t, 0x48, NewTMP102())
	r.expect(1, 0x60, 0xa0)
	r.expect(0, 0, 0) // not yet
	time.Sleep(tmpConversion)
	for celsius, raw := range map[float64][]byte{
		128: {0x7f, 0xf0}, 100: {0x64, 0x00}, 80: {0x50, 0x00}, 25: {0x19, 0x00}, 0.25: {0x00, 0x40},
		0: {0, 0}, -0.25: {0xff, 0xc0}, -25: {0xe7, 0x00}, -55: {0xc9, 0x00},
	} {
		r.setInput("temperature", celsius)
		r.expect(0, raw...)
	}
	r.setInput("temperature", 25)
	r.write(1, 0x60, 0xb0) // 13 bits
	r.expect(0, 0x0c, 0x81)
	r.write(1, 0x61, 0xa0) // shut down: it measures when asked to
	r.expect(0, 0x0c, 0x81)
	r.write(1, 0xe1, 0xa0)
	r.setInput("temperature", 80)
	r.expect(0, 0x19, 0x00)
	r.write(0, 1, 2) // cannot be written
	r.expect(2, 0x4b, 0x00)
}

func TestMCP9808(t *testing.T) { synctest.Test(t, testMCP9808) }

func testMCP9808(t *testing.T) {
	r := newRig(t, 0x1f, NewMCP9808())
	r.expect(5, 0, 0) // not yet
	time.Sleep(mcp9808Conversion)
	r.expect(6, 0x00, 0x54)
	r.expect(7, 0x04, 0x00)
	for celsius, raw := range map[float64][]byte{25.25: {0xc1, 0x94}, 0: {0x80, 0x00}, -10.5: {0x3f, 0x58}} {
		r.setInput("temperature", celsius)
		r.expect(5, raw...)
	}
	r.write(7, 1, 1)
	r.expect(7, 0x04, 0x00)
}

func TestADS1115(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x49, NewADS1115())
		r.expect(1, 0x85, 0x83)
		r.setInput("in0", 1.024)
		r.setInput("in3", -0.5)
		r.write(1, 0xc5, 0x83) // once, in0, ±2.048 V, 128 a second
		r.expect(1, 0x45, 0x83)
		r.expect(0, 0x00, 0x00) // not yet
		time.Sleep(time.Second / 128)
		r.expect(1, 0xc5, 0x83)
		r.expect(0, 0x40, 0x00)
		r.setInput("in0", 2)
		r.expect(0, 0x40, 0x00) // once is once
		r.write(1, 0x90, 0x83)  // continuous, in0 minus in3, ±6.144 V
		time.Sleep(time.Second / 128)
		r.expect(0, 0x34, 0x15)
		r.write(1, 0x44, 0x83) // 2 V in a range to 2.048 V
		time.Sleep(time.Second / 128)
		r.expect(0, 0x7d, 0x00)
		r.write(1, 0x4a, 0x83) // and to 0.256 V
		time.Sleep(time.Second / 128)
		r.expect(0, 0x7f, 0xff)
	})
}

func TestBH1750(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x23, NewBH1750())
		lux := func() float64 { return float64(binary.BigEndian.Uint16(r.read(2))) / 1.2 }
		r.setInput("illuminance", 500)
		if lux() != 0 {
			t.Error("it measures without being inputs to")
		}
		r.write(0x10)
		if lux() != 0 {
			t.Error("it has measured in no time")
		}
		time.Sleep(120 * time.Millisecond)
		if got := lux(); got != 500 {
			t.Errorf("%v lx", got)
		}
		r.write(0x10) // a new measurement; the old result stays
		if got := lux(); got != 500 {
			t.Errorf("%v lx", got)
		}
		r.write(0x44) // MTreg 138, with the next
		r.write(0x6a)
		r.write(0x21) // once, at double resolution
		time.Sleep(240 * time.Millisecond)
		if got := lux(); got != 2000 {
			t.Errorf("%v, not four times as much", got)
		}
		r.setInput("illuminance", 1)
		if got := lux(); got != 2000 {
			t.Errorf("%v: once is once", got)
		}
	})
}

// TestBME280Formulas uses the example of BST-BMP280-DS001, section 3.12.
func TestBME280Formulas(t *testing.T) {
	fine := bmeFine(519888)
	if fine != 128422 {
		t.Errorf("t_fine is %d", fine)
	}
	if p := bmePressure(415148, fine); math.Abs(p-100653.27) > 0.5 {
		t.Errorf("%v Pa", p)
	}
}

func TestBME280(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x76, NewBME280())
		r.expect(0xd0, 0x60)
		r.expect(0x88, 0x70, 0x6b, 0x43, 0x67, 0x18, 0xfc)
		r.expect(0xe1, 0x6a, 0x01, 0x00, 0x13, 0x29, 0x03, 0x1e)
		r.expect(0xf7, 0x80, 0, 0, 0x80, 0, 0, 0x80, 0) // nothing measured
		measured := func() (celsius, pascal, percent float64) {
			r.write(0xf7)
			b := r.read(8)
			twenty := func(b []byte) int64 { return int64(b[0])<<12 | int64(b[1])<<4 | int64(b[2])>>4 }
			fine := bmeFine(twenty(b[3:]))
			return float64((fine*5+128)>>8) / 100, bmePressure(twenty(b), fine), NewBME280().percent(int64(b[6])<<8|int64(b[7]), fine)
		}
		for _, world := range [][3]float64{{23.45, 98765, 41.5}, {-40, 30000, 5}, {85, 110000, 95}, {0, 101325, 50}} {
			r.setInput("temperature", world[0])
			r.setInput("pressure", world[1])
			r.setInput("humidity", world[2])
			r.write(0xf2, 1, 0xf4, 0x25) // all once
			r.expect(0xf3, 8)
			time.Sleep(10 * time.Millisecond)
			r.expect(0xf3, 0)
			r.expect(0xf4, 0x24) // asleep again
			c, p, h := measured()
			if c != world[0] || math.Abs(p-world[1]) > 1 || math.Abs(h-world[2]) > 0.05 {
				t.Errorf("%v °C, %v Pa, %v %%; inputs %v", c, p, h, world)
			}
		}
		r.setInput("temperature", 60)
		if c, _, _ := measured(); c != 0 {
			t.Errorf("it measures asleep: %v °C", c)
		}
		r.write(0xe0, 0xb6)
		r.write(0xf4, 0x27, 0xf2, 1) // ctrl_hum too late: temperature and pressure only, continuous
		time.Sleep(10 * time.Millisecond)
		r.expect(0xfd, 0x80, 0)
		if c, _, _ := measured(); c != 60 {
			t.Errorf("%v °C", c)
		}
		r.setInput("temperature", 61)
		if c, _, _ := measured(); c != 61 {
			t.Errorf("%v °C", c)
		}
	})
}

// TestINA219 uses the example of SBOS448, figure 27: 20 mV and 11.98 V.
func TestINA219(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x40, NewINA219())
		r.expect(0, 0x39, 0x9f)
		r.expect(2, 0, 0) // not yet
		r.setInput("voltage", 11.98)
		r.setInput("current", 0.2)
		time.Sleep(inaConversion)
		r.expect(1, 0x07, 0xd0)
		r.expect(2, 0x5d, 0x9a) // with the conversion-ready bit
		r.setInput("current", -0.2)
		r.expect(1, 0xf8, 0x30)
		r.write(0, 0x39, 0x98) // power-down
		r.setInput("current", 1)
		r.expect(1, 0xf8, 0x30)
		r.write(0, 0x80, 0x00)
		r.expect(0, 0x39, 0x9f)
		r.expect(1, 0, 0)
	})
}

// TestSGP30: the sensor measures after a command, and warms up first.
func TestSGP30(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x58, NewSGP30())
		says := func(command byte, want ...uint16) {
			t.Helper()
			r.write(0x20, command)
			time.Sleep(12 * time.Millisecond)
			b := r.read(3 * len(want))
			for i, w := range want {
				if got := binary.BigEndian.Uint16(b[3*i:]); got != w || b[3*i+2] != sgpCRC(b[3*i:3*i+2]) {
					t.Errorf("%#02x: word %d is %d (% x), want %d", command, i, got, b, w)
				}
			}
		}
		says(0x2f, 0x0022)
		r.setInput("concentration_co2", 800)
		r.setInput("concentration_voc", 30)
		time.Sleep(time.Minute)
		says(0x08, 400, 0)
		r.write(0x20, 0x03)
		time.Sleep(10 * time.Second)
		says(0x08, 400, 0)
		time.Sleep(10 * time.Second)
		says(0x08, 800, 30)
		says(0x15, 0, 0)
		time.Sleep(time.Hour)
		says(0x15, 0x8a1c, 0x8f41)
		r.Bus.SetState("chip", Absent)
		r.Bus.SetState("chip", OK)
		says(0x08, 400, 0)
		says(0x15, 0, 0)
	})
}

// TestMAX17043: 4.2 V are 3360 counts of 1.25 mV, in the upper twelve bits; a quarter of a percent is 64.
func TestMAX17043(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0x36, NewMAX17043())
		r.setInput("voltage", 4.2)
		r.setInput("charge", 97.25)
		r.expect(0x0C, 0x97, 0x1C)
		r.expect(0x02, 0, 0, 0, 0) // not yet
		time.Sleep(gaugeConversion)
		r.expect(0x02, 0xD2, 0x00, 0, 0)
		time.Sleep(gaugeEstimate - gaugeConversion)
		r.expect(0x02, 0xD2, 0x00, 97, 64)
		r.write(0x02, 1, 2) // read-only
		r.expect(0x02, 0xD2, 0x00)
		r.write(0xFE, 0x54, 0x00) // as after power-on
		r.expect(0x02, 0, 0, 0, 0)
	})
}
