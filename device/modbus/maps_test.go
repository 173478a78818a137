package modbus

import (
	"math"
	"testing"

	"agentsite/device"
)

// TestMapValues: registers as the sources of the maps have them are the numbers that these say, and a number that
// stands for not known is a fault.
func TestMapValues(t *testing.T) {
	fault := math.NaN()
	for _, c := range []struct {
		of, point string
		at        at
		words     []uint16
		want      float64
	}{
		{"eastron-sdm120", "power", at{inputs, 0x0C}, []uint16{0x4366, 0x3333}, 230.199997},
		{"eastron-sdm630", "power", at{inputs, 0x34}, []uint16{0x4366, 0x3333}, 230.199997},
		{"eastron-sdm72", "energy", at{inputs, 0x156}, []uint16{0x3F80, 0}, 1},
		{"gavazzi-em340", "power", at{inputs, 0x28}, []uint16{0x86A0, 0x0001}, 10000},
		{"gavazzi-em340", "power_l1", at{inputs, 0x12}, []uint16{0xFFFF, 0xFFFF}, -0.1},
		{"abb-b23", "power", at{holdings, 0x5B14}, []uint16{0x0001, 0xE8E4}, 1251.56},
		{"abb-b23", "frequency", at{holdings, 0x5B2C}, []uint16{0x1383}, 49.95},
		{"abb-b23", "power", at{holdings, 0x5B14}, []uint16{0x7FFF, 0xFFFF}, fault},
		{"abb-b23", "energy_export", at{holdings, 0x5004}, []uint16{0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF}, fault},
		{"janitza-umg96", "energy_import", at{holdings, 19068}, []uint16{0x447A, 0}, 1},
		{"huawei-sun2000", "energy", at{holdings, 32106}, []uint16{0, 20734}, 207.34},
		{"huawei-sun2000", "power", at{holdings, 32080}, []uint16{0x7FFF, 0xFFFF}, fault},
		{"huawei-sun2000", "temperature", at{holdings, 32087}, []uint16{0x7FFF}, fault},
		{"huawei-sun2000", "energy_today", at{holdings, 32114}, []uint16{0xFFFF, 0xFFFF}, fault},
		{"growatt", "frequency", at{inputs, 37}, []uint16{5000}, 50},
		{"victron-gx", "battery_current", at{holdings, 841}, []uint16{0xFFF6}, -1},
		{"victron-gx", "battery_voltage", at{holdings, 840}, []uint16{0}, fault},
		{"victron-gx", "consumption_l1", at{holdings, 817}, []uint16{0xFFFB}, fault}, // -5 W in an unsigned number
		{"sunspec-inverter", "state", sun(38), []uint16{0}, fault},
		{"grundfos-pump", "liquid_temperature", at{inputs, 321}, []uint16{29315}, 20},
		{"grundfos-pump", "liquid_temperature", at{inputs, 321}, []uint16{0}, fault},
		{"grundfos-pump", "flow", at{inputs, 301}, []uint16{0xFFFF}, fault},
		{"grundfos-pump", "power", at{inputs, 311}, []uint16{0, 0xFFFF}, fault},
		{"imp-nmt", "head", at{inputs, 300}, []uint16{412}, 4.12},
		{"imp-nmt", "liquid_temperature", at{inputs, 321}, []uint16{0xFE0C}, -5},
		{"waveshare-analog-in-8", "ai8", at{inputs, 7}, []uint16{4000}, 4},
	} {
		m, err := (&config{Map: c.of}).known()
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.entry("x", c.point)
		if err != nil {
			t.Fatal(err)
		}
		if p.at != c.at || p.words() != len(c.words) {
			t.Errorf("%s: %s is at %v", c.of, c.point, p.at)
			continue
		}
		r := p.input(c.words, 0)
		if good := r.Quality == device.Good; good == math.IsNaN(c.want) || good && math.Abs(r.Value.Number()-c.want) > 1e-5 {
			t.Errorf("%s: %s of %v is %+v, want %v", c.of, c.point, c.words, r, c.want)
		}
	}
}

// TestAnalogInputMode: channels that are set to voltages are not read as currents.
func TestAnalogInputMode(t *testing.T) {
	f := newFake()
	c := configOf(nil)
	c.Address, c.Map = f.serveTCP(t), "waveshare-analog-in-8"
	for mode, good := range map[uint16]bool{0: false, 3: true} {
		f.set(func() {
			for i := range uint16(8) {
				f.holdings[0x1000+i], f.inputs[i] = mode, 4000
			}
		})
		d, err := c.Open(t.Context())
		if (err == nil) != good {
			t.Errorf("mode %d: %v", mode, err)
		}
		if err == nil {
			d.Close()
		}
	}
}
