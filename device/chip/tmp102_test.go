package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

func tmp102(raw uint16) *registers {
	return &registers{addr: 0x48, words: map[byte]uint16{tmp102Temperature: raw}}
}

func TestTMP102(t *testing.T) {
	measured(t, "tmp102", func() *registers { return tmp102(0x1900) }, map[string]float64{"temperature": 25})
	synctest.Test(t, func(t *testing.T) {
		// the datasheet's table of 12-bit data, and periph's (tmp102_test.go)
		for raw, want := range map[uint16]float64{0x7FF0: 127.9375, 0x6400: 100, 0x5000: 80, 0x3200: 50, 0x0040: 0.25, 0: 0, 0xFFC0: -0.25, 0xE700: -25, 0xC900: -55} {
			wants(t, open(t, "tmp102", tmp102(raw)), map[string]float64{"temperature": want})
		}
		lacks(t, open(t, "tmp102", tmp102(0x8000)), map[string]string{"temperature": "-128"})
		fails(t, open(t, "tmp102", tmp102(0x1901)), device.Offline)
	})
}

// Something with other bits in the register of the settings is no TMP102, and gets
// no more than that one write.
func TestTMP102WrongChip(t *testing.T) {
	bus := tmp102(0x1900)
	bus.answer = func(w, r []byte) bool { return w[0] == tmp102Settings }
	refused(t, config(t, "tmp102", bus), device.Invalid, "no TMP102")
	if len(bus.writes) != 2 {
		t.Errorf("written: %x", bus.writes)
	}
}
