package testbed

import (
	"bytes"
	"math"
	"testing"
)

func TestPCF8574(t *testing.T) {
	r := newRig(t, 0x20, NewPCF8574())
	r.write(0xf0)
	r.setInput("low", 0x80)
	if got := r.read(2); !bytes.Equal(got, []byte{0x70, 0x70}) {
		t.Errorf("% x", got)
	}
	r.write(0x00) // a register number of 0 switches all pins
	if pins := r.outputs().(map[string]byte)["pins"]; pins != 0 {
		t.Errorf("%#02x", pins)
	}
}

func TestMCP4725(t *testing.T) {
	r := newRig(t, 0x60, NewMCP4725())
	out := func(out, eeprom uint16) {
		t.Helper()
		if s := r.outputs().(map[string]uint16); s["out"] != out || s["eeprom"] != eeprom {
			t.Errorf("%v, want %d and %d", s, out, eeprom)
		}
	}
	out(2048, 2048)
	r.write(0x0a, 0xbc)
	out(0xabc, 2048)
	r.write(0x40, 0x12, 0x30)
	out(0x123, 2048)
	r.write(0x00) // an incomplete command
	out(0x123, 2048)
	r.write(0x60, 0x45, 0x60)
	out(0x456, 0x456)
	if got := r.read(5); !bytes.Equal(got, []byte{0xc0, 0x45, 0x60, 0x04, 0x56}) {
		t.Errorf("% x", got)
	}
}

func TestPCA9685(t *testing.T) {
	r := newRig(t, 0x40, NewPCA9685())
	r.expect(0, 0x11)
	r.write(0xfe, 121) // 50 Hz, for servos
	r.write(0, 0x20)   // awake, registers one after the other
	r.write(0xfe, 3)   // refused while awake
	r.write(0x06+4*3, 0, 0, 0x33, 0x01)
	p := r.outputs().(PWM)
	if math.Abs(p.Hz-50) > 0.1 || math.Abs(p.On[3]-0x133/4096.0) > 1e-9 || p.On[2] != 0 {
		t.Errorf("%+v", p)
	}
	r.write(0xfa, 0, 0x10, 0, 0) // all on
	if p = r.outputs().(PWM); p.On[0] != 1 || p.On[15] != 1 {
		t.Errorf("%+v", p)
	}
	r.write(0xfd, 0x10) // off is stronger
	if p = r.outputs().(PWM); p.On != [16]float64{} {
		t.Errorf("%+v", p)
	}
	r.write(0, 0x30)
	r.expect(0, 0xb0) // asleep, with the restart bit
}

func TestSSD1306(t *testing.T) {
	r := newRig(t, 0x3c, NewSSD1306())
	if r.read(1)[0]&0x40 == 0 {
		t.Error("it is on")
	}
	r.write(0x00, 0xae, 0xd5, 0x80, 0xa8, 0x3f, 0x20, 0x00, 0x81, 0x30, 0xaf)
	r.write(0x00, 0x21, 126, 127, 0x22, 6, 7)
	r.write(0x40, 1, 2, 3, 4, 5)
	s := r.outputs().(Screen)
	for at, want := range map[int]byte{6*128 + 126: 5, 6*128 + 127: 2, 7*128 + 126: 3, 7*128 + 127: 4} {
		if s.Memory[at] != want {
			t.Errorf("at %d is %d, want %d", at, s.Memory[at], want)
		}
	}
	if !s.On || s.Contrast != 0x30 || len(s.Memory) != 1024 {
		t.Errorf("on %v, contrast %#02x, %d bytes", s.On, s.Contrast, len(s.Memory))
	}
	r.write(0x80, 0x20, 0x80, 0x02, 0x80, 0xb1, 0x80, 0x05, 0x80, 0x12, 0xc0, 9) // by page, one byte at a time
	if s = r.outputs().(Screen); s.Memory[1*128+0x25] != 9 {
		t.Error("by page")
	}
}
