package chip

import (
	"slices"
	"testing"
	"testing/synctest"

	"agentsite/device"
)

func hdc302x(temperature, humidity uint16) *registers {
	return speaks(0x44, map[string][]uint16{string(hdc302xManufacturer): {0x3000}, string(hdc302xMeasure): {temperature, humidity}})
}

func TestHDC302x(t *testing.T) {
	// what periph recorded: 26.621 degrees, 23.2 % (hdc302x_test.go)
	bus := func() *registers { return hdc302x(0x68C5, 0x3B82) }
	measured(t, "hdc302x", bus, map[string]float64{"temperature": -45 + 175*26821.0/65535, "humidity": 100 * 15234.0 / 65535})
	synctest.Test(t, func(t *testing.T) {
		b := bus()
		if open(t, "hdc302x", b); !slices.ContainsFunc(b.writes, func(w []byte) bool { return slices.Equal(w, hdc302xStop) }) {
			t.Error("one that measures by itself is left at it")
		}
		for bit := range 6 * 8 {
			fails(t, open(t, "hdc302x", spoilt(bus(), string(hdc302xMeasure), bit)), device.Offline)
		}
		lacks(t, open(t, "hdc302x", hdc302x(0, 0)), map[string]string{"temperature": "-45", "humidity": "-45"})
		refused(t, config(t, "hdc302x", speaks(0x44, map[string][]uint16{string(hdc302xManufacturer): {0x3001}})), device.Invalid, "no HDC302x")
		refused(t, config(t, "hdc302x", sht4x(0, 0)), device.Offline, "CRC") // it can have the same address
	})
}
