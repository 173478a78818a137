package devices

import (
	"slices"
	"testing"

	"agentsite/device/board"
	"agentsite/device/modbus"
	"agentsite/node/config"
)

// TestSharedPort: what is on a port with an output is in the guard's process, which alone can open it, and
// moves there when the output comes.
func TestSharedPort(t *testing.T) {
	const meter, other, relay = "  meter: { driver: modbus, port: /dev/ttyUSB0, map: eastron-sdm72 }\n",
		"  tank: { driver: modbus, port: /dev/ttyUSB1, map: eastron-sdm72 }\n  sun: { driver: modbus, address: 192.168.1.20, map: growatt }\n",
		"  relay: { driver: modbus, port: /dev/ttyUSB0, unit_id: 2, outputs: { pump: { coil: 0, safe: off } } }\n"
	parse := func(devices string) *config.Site {
		t.Helper()
		cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices:\n"+devices), modbus.Drivers(board.New()))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	with, without := parse(meter+other+relay), parse(meter+other)
	for cfg, want := range map[*config.Site][]string{with: {"meter", "relay"}, without: nil} {
		plan, err := NewPlan(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range plan.devices {
			got = append(got, d.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the guard's process has %v, want %v", got, want)
		}
	}
	if with.Devices[0].Same(without.Devices[0]) {
		t.Error("a reload leaves the meter in the site's process")
	}
	if !with.Devices[1].Same(without.Devices[1]) {
		t.Error("a reload closes what has its own port")
	}
	if _, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices:\n"+meter+"  slow: { driver: modbus, port: /dev/ttyUSB0, baud: 1200, unit_id: 3, map: growatt }\n"), modbus.Drivers(board.New())); err == nil {
		t.Error("one port has two rates")
	}
}
