package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

func mcp9808(temperature uint16) *registers {
	return &registers{addr: 0x18, words: map[byte]uint16{mcp9808Manufacturer: 0x0054, mcp9808Device: 0x0400, mcp9808Temperature: temperature}}
}

func TestMCP9808(t *testing.T) {
	measured(t, "mcp9808", func() *registers { return mcp9808(0xC194) }, map[string]float64{"temperature": 25.25})
	synctest.Test(t, func(t *testing.T) {
		// with their alerts, as periph has them (mcp9808_test.go)
		for raw, want := range map[uint16]float64{0: 0, 0x00A0: 10, 0x1F60: -10, 0x3FF0: -1, 0x4070: 7, 0xC0F0: 15} {
			wants(t, open(t, "mcp9808", mcp9808(raw)), map[string]float64{"temperature": want})
		}
		lacks(t, open(t, "mcp9808", mcp9808(0x1000)), map[string]string{"temperature": "-256"})
		lacks(t, open(t, "mcp9808", mcp9808(0xC7F0)), map[string]string{"temperature": "127"})
	})
	for register, says := range map[byte]string{mcp9808Manufacturer: "0x54", mcp9808Device: "0x400"} {
		bus := mcp9808(0)
		bus.words[register] = 0x1234
		refused(t, config(t, "mcp9808", bus), device.Invalid, says)
		for _, w := range bus.writes {
			if len(w) > 1 {
				t.Errorf("%x was written to another chip", w)
			}
		}
	}
}
