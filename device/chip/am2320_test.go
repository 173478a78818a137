package chip

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"

	"agentsite/device"
)

// am2320Of is a chip that has to be woken, and answers with these bytes and their
// CRC.
func am2320Of(answer ...byte) *registers {
	b := &registers{addr: 0x5C}
	var awake bool
	b.answer = func(w, r []byte) bool {
		switch {
		case slices.Equal(w, []byte{0}):
			awake = true
		case len(r) > 0 && awake:
			copy(r, binary.LittleEndian.AppendUint16(slices.Clone(answer), crcModbus(answer)))
			awake = false
		}
		return true
	}
	return b
}

func TestAM2320(t *testing.T) {
	// what periph recorded: 34.8 %, 23.9 degrees (am2320_test.go)
	bus := func() *registers { return am2320Of(3, 4, 0x01, 0x5C, 0x00, 0xEF) }
	measured(t, "am2320", bus, map[string]float64{"temperature": 23.9, "humidity": 34.8})
	if crc := crcModbus([]byte{3, 4, 0x01, 0xF4, 0x00, 0xFA}); crc != 0xA531 { // the manual's example
		t.Errorf("got %#x", crc)
	}
	synctest.Test(t, func(t *testing.T) {
		wants(t, open(t, "am2320", am2320Of(3, 4, 0x03, 0xE8, 0x80, 0x65)), map[string]float64{"temperature": -10.1, "humidity": 100}) // the manual's
		lacks(t, open(t, "am2320", am2320Of(3, 4, 0x03, 0xE9, 0x81, 0x96)), map[string]string{"temperature": "-40.6", "humidity": "-40.6"})
		lacks(t, open(t, "am2320", am2320Of(3, 4, 0x04, 0x07, 0, 0)), map[string]string{"temperature": "103.1", "humidity": "103.1"})
		wants(t, open(t, "am2320", am2320Of(3, 4, 0x04, 0x06, 0x81, 0x95)), map[string]float64{"temperature": -40, "humidity": 100})
		for bit := range 8 * 8 {
			refused(t, config(t, "am2320", spoilt(bus(), string(am2320Read), bit)), device.Offline, "CRC")
		}
		refused(t, config(t, "am2320", am2320Of(0x83, 4, 0, 0, 0, 0)), device.Offline, "AM2320")
		refused(t, config(t, "am2320", bh1750(5)), device.Offline, "0x5c") // it can have the same address
	})
}
