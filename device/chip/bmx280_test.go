package chip

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
)

// bme280 is a chip with the calibration and the measurement that periph recorded
// from one (bmxx80/bmx280_test.go).
func bme280() *registers {
	b := &registers{addr: 0x76}
	b.mem[bmx280ID] = 0x60
	copy(b.mem[bmx280Trim:], []byte{0x10, 0x6e, 0x6c, 0x66, 0x32, 0x0, 0x5d, 0x95, 0xb8, 0xd5, 0xd0, 0xb, 0x77, 0x1e, 0x9d, 0xff, 0xf9, 0xff, 0xac, 0x26, 0xa, 0xd8, 0xbd, 0x10, 0x0, 0x4b})
	copy(b.mem[bmx280TrimHum:], []byte{0x6e, 0x1, 0x0, 0x13, 0x5, 0x0, 0x1e})
	b.answer = func(w, r []byte) bool { // it takes pairs, and is done at once
		for ; len(w) > 1; w = w[2:] {
			b.mem[w[0]] = w[1]
			b.mem[bmx280CtrlMeas] &^= bmx280Forced
		}
		return len(w) == 0
	}
	copy(b.mem[0xF7:], []byte{0x4a, 0x52, 0xc0, 0x80, 0x96, 0xc0, 0x7a, 0x76})
	return b
}

var bme280Wants = map[string]float64{"temperature": 23.72, "pressure": 100942.6953125, "humidity": 65.3056640625}

func TestBME280(t *testing.T) {
	measured(t, "bme280", bme280, bme280Wants)
	synctest.Test(t, func(t *testing.T) {
		bmp := bme280()
		bmp.mem[bmx280ID] = 0x58
		wants(t, open(t, "bmp280", bmp), map[string]float64{"temperature": 23.72, "pressure": 100942.6953125})
	})
}

// One impossible value makes the others bad, too.
func TestBME280Nonsense(t *testing.T) {
	all := map[string]string{"temperature": "cannot be", "pressure": "cannot be", "humidity": "cannot be"}
	for what, spoil := range map[string]func(mem *[256]byte){
		"no pressure":         func(mem *[256]byte) { copy(mem[0xF7:], []byte{0, 0, 0}) },
		"all the pressure":    func(mem *[256]byte) { copy(mem[0xF7:], []byte{0xFF, 0xFF, 0xF0}) },
		"no temperature":      func(mem *[256]byte) { copy(mem[0xFA:], []byte{0, 0, 0}) },
		"no humidity":         func(mem *[256]byte) { copy(mem[0xFD:], []byte{0, 0}) },
		"all the humidity":    func(mem *[256]byte) { copy(mem[0xFD:], []byte{0xFF, 0xFF}) },
		"an absurd dig_P1":    func(mem *[256]byte) { copy(mem[0x8E:], []byte{1, 0}) },
		"an absurd dig_P all": func(mem *[256]byte) { copy(mem[0x8E:0xA0], make([]byte, 18)); mem[0x8E] = 1 },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := bme280()
			spoil(&b.mem)
			t.Log(what)
			lacks(t, open(t, "bme280", b), all)
		})
	}
}

// Factory values that were read wrong are not believed, nor those of a chip that has
// none.
func TestBME280Calibration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, register := range []byte{bmx280Trim, bmx280TrimHum} {
			b := bme280()
			whole, reads := b.answer, 0
			b.answer = func(w, r []byte) bool {
				if len(w) == 1 && w[0] == register {
					if copy(r, b.mem[register:]); reads%2 == 0 {
						r[2] ^= 0x10
					}
					reads++
					return true
				}
				return whole(w, r)
			}
			refused(t, config(t, "bme280", b), device.Offline, "BME280")
		}
		for _, from := range []int{0x88, 0x8A, 0x8E, 0xE1} {
			for _, held := range []byte{0, 0xFF} {
				b := bme280()
				b.mem[from], b.mem[from+1] = held, held
				refused(t, config(t, "bme280", b), device.Offline, "calibration")
			}
		}
	})
}

func TestBME280WrongChip(t *testing.T) {
	refused(t, config(t, "bmp280", bme280()), device.Invalid, "write \"driver: bme280\"")
	other := bme280()
	other.mem[bmx280ID] = 0x61
	refused(t, config(t, "bme280", other), device.Invalid, "0x61")
}

// fakeBMP180 has the calibration and the measurement of the datasheet's example (figure 4, page
// 15). Its pressure is of one sample; four samples have two bits more.
func fakeBMP180() *registers {
	b := &registers{addr: 0x77}
	b.mem[bmx280ID] = 0x55
	for i, v := range []int{408, -72, -14383, 32741, 32757, 23153, 6190, 4, -32768, -8711, 2868} {
		binary.BigEndian.PutUint16(b.mem[bmp180Trim+2*i:], uint16(v))
	}
	b.answer = func(w, r []byte) bool {
		if len(w) < 2 {
			return false
		}
		b.mem[bmp180Control] = w[1] &^ bmp180Converting
		switch w[1] {
		case bmp180Temperature:
			copy(b.mem[bmp180Result:], []byte{0x6C, 0xFA, 0})
		case bmp180Pressure:
			copy(b.mem[bmp180Result:], []byte{0x5D, 0x23, 0})
		}
		return true
	}
	return b
}

func TestBMP180(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newI2CChip(config(t, "bmp180", fakeBMP180()).(*sensorConfig).I2C, "BMP180")
		if err := dev.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer dev.End()
		d := bmp180{i2cChip: dev}
		if d.calibrate(); d.err != nil {
			t.Fatal(d.err)
		}
		if tenths, pascals := d.compensate(27898, 23843, 0); tenths != 150 || pascals != 69964 {
			t.Errorf("%d, %d", tenths, pascals)
		}
	})
	measured(t, "bmp180", fakeBMP180, map[string]float64{"temperature": 15, "pressure": 69963})
	synctest.Test(t, func(t *testing.T) {
		lost := fakeBMP180()
		dev := open(t, "bmp180", lost)
		whole := lost.answer
		lost.answer = func(w, r []byte) bool { return len(w) > 1 } // it never converts
		fails(t, dev, device.Offline)
		lost.answer = whole
		wants(t, dev, map[string]float64{"temperature": 15, "pressure": 69963})
		none := fakeBMP180()
		none.mem[bmp180Trim+5] = 0
		none.mem[bmp180Trim+4] = 0
		refused(t, config(t, "bmp180", none), device.Offline, "calibration")
	})
}

func FuzzBME280(f *testing.F) {
	seeded := func(make func() *registers, from byte) func(seed []byte) i2c.Bus {
		return func(seed []byte) i2c.Bus {
			b := make()
			n := copy(b.mem[from:0xD0], seed)
			copy(b.mem[bmx280TrimHum:0xE8], seed[n:])
			return b
		}
	}
	decodesAll(f, fuzzed{"bme280", seeded(bme280, bmx280Trim)}, fuzzed{"bmp180", seeded(fakeBMP180, bmp180Trim)})
}
