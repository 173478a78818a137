package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

func gauge(voltage, charge uint16) *registers {
	return &registers{addr: 0x36, words: map[byte]uint16{gaugeVoltage: voltage, gaugeCharge: charge, gaugeVersion: 0x0012}}
}

func TestGauge(t *testing.T) {
	// 3.70 V are 2960 counts of 1.25 mV, in the upper twelve bits (19-4811, table 2)
	measured(t, "max17043", func() *registers { return gauge(2960<<4, 0x4B80) },
		map[string]float64{"voltage": 3.7, "charge": 75.5})
	synctest.Test(t, func(t *testing.T) {
		c := config(t, "max17043", gauge(2960<<4, 0x6600)).(*gaugeConfig) // 102 %, which is full
		c.Cells = 2
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wants(t, dev, map[string]float64{"voltage": 7.4, "charge": 100})
	})
}

// TestGaugeUnknown: what the chip says before it knows anything, or without a battery, is never a charge.
func TestGaugeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lacks(t, open(t, "max17043", gauge(0, 0)), map[string]string{"voltage": "no battery", "charge": "no battery"})
		lacks(t, open(t, "max17043", gauge(800<<4, 0x0100)),
			map[string]string{"voltage": "no battery", "charge": "no battery"})
		lacks(t, open(t, "max17043", gauge(2960<<4, 0)), map[string]string{"charge": "no result yet"})
		lacks(t, open(t, "max17043", gauge(2960<<4, 0xC800)),
			map[string]string{"voltage": "cannot be", "charge": "cannot be"})
		wants(t, open(t, "max17043", gauge(2560<<4, 0)), map[string]float64{"voltage": 3.2, "charge": 0})
	})
}

func TestGaugeWrongChip(t *testing.T) {
	for _, version := range []uint16{0, 0xFFFF} {
		bus := gauge(0, 0)
		bus.words[gaugeVersion] = version
		refused(t, config(t, "max17043", bus), device.Invalid, "no MAX17043")
		for _, w := range bus.writes {
			if len(w) > 1 {
				t.Errorf("written: %x", w)
			}
		}
	}
	c := config(t, "max17043", gauge(0, 0)).(*gaugeConfig)
	c.Cells = 3
	refused(t, c, device.Invalid, "write 1, or 2")
}
