package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
	"agentsite/device/board"
)

// aht20 is a chip that answers with these six bytes and their CRC.
func aht20Of(data ...byte) *registers {
	b := &registers{addr: 0x38}
	b.answer = func(w, r []byte) bool {
		if len(r) > 0 {
			copy(r, append(data, board.CRC8(data)))
		}
		return true
	}
	return b
}

func TestAHT20(t *testing.T) {
	// what periph recorded (aht20_test.go); its CRC is 0x7F
	bus := func() *registers { return aht20Of(0x18, 0x75, 0x52, 0x05, 0x8E, 0x40) }
	measured(t, "aht20", bus, map[string]float64{"temperature": 19.445800781, "humidity": 45.82824})
	synctest.Test(t, func(t *testing.T) {
		for bit := range 7 * 8 {
			fails(t, open(t, "aht20", spoilt(bus(), "\xAC\x33\x00", bit)), device.Offline)
		}
		fails(t, open(t, "aht20", aht20Of(0x10, 0x75, 0x52, 0x05, 0x8E, 0x40)), device.Offline) // not calibrated
		fails(t, open(t, "aht20", aht20Of(0x98, 0x75, 0x52, 0x05, 0x8E, 0x40)), device.Offline) // busy for ever
		lacks(t, open(t, "aht20", aht20Of(0x18, 0x75, 0x52, 0x00, 0, 0)), map[string]string{"temperature": "-50", "humidity": "temperature reads -50"})
	})
}
