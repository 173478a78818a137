package chip

import (
	"strings"
	"testing"

	"periph.io/x/conn/v3/i2c"
)

// bme280 is a chip with the calibration and the measurement that periph recorded
// from one (bmxx80/bmx280_test.go).
func bme280() *registers {
	b := &registers{addr: 0x76}
	b.mem[0xD0] = 0x60
	copy(b.mem[0x88:], []byte{0x10, 0x6e, 0x6c, 0x66, 0x32, 0x0, 0x5d, 0x95, 0xb8, 0xd5, 0xd0, 0xb, 0x77, 0x1e, 0x9d, 0xff, 0xf9, 0xff, 0xac, 0x26, 0xa, 0xd8, 0xbd, 0x10, 0x0, 0x4b})
	copy(b.mem[0xE1:], []byte{0x6e, 0x1, 0x0, 0x13, 0x5, 0x0, 0x1e})
	b.answer = func(w, r []byte) bool { return len(w) > 1 } // it only measures
	copy(b.mem[0xF7:], []byte{0x4a, 0x52, 0xc0, 0x80, 0x96, 0xc0, 0x7a, 0x76})
	return b
}

var bme280Wants = map[string]float64{"temperature": 23.72, "pressure": 100942.6953125, "humidity": 65.3056}

func TestBME280(t *testing.T) {
	bus := bme280()
	dev := open(t, "bme280", bus)
	recovers(t, dev, bus, bme280Wants)
	conforms(t, "bme280", func() i2c.Bus { return bme280() })
}

func TestBMP280IsNoBME280(t *testing.T) {
	if _, err := config(t, "bmp280", bme280()).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "write \"driver: bme280\"") {
		t.Error(err)
	}
}

func FuzzBME280(f *testing.F) {
	decodes(f, "bme280", func(seed []byte) i2c.Bus {
		b := bme280()
		copy(b.mem[0x88:0xD0], seed)
		copy(b.mem[0xE1:], seed)
		return b
	})
}
