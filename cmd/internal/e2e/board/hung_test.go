//go:build e2e && linux

package board

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestBoardHangs has the chips of a bus hang one after the other, each for some transfers of 4 s, the
// display while it is written to. It alone becomes a fault, all other readings stay good, and neither a
// rule on another chip nor an output of one moves. While a chip with outputs or the display hangs, others
// can be stale for a moment: it is written to again at once after a transfer that hung, and both block
// the bus for 8 s. It takes some minutes, because each chip is asked less often meanwhile and has to be
// found again. The board's clock follows its instructions (-icount): a busy host makes
// it slow, and not late.
func TestBoardHangs(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	m := boot(t, filepath.Join(dir, "virt/modules"), "console=ttyAMA0",
		"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-icount", "shift=3", "-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	m.SetInput(t, "tmp102", "temperature", 2)
	m.SetInput(t, "mcp9808", "temperature", 2)
	m.SetInput(t, "bh1750", "illuminance", 432)
	m.StartSite(t, strings.ReplaceAll(`site: { name: board }
devices:
  climate: { driver: bme280, bus: BUS, every: 2s }
  outside: { driver: tmp102, bus: BUS, every: 2s }
  light: { driver: bh1750, bus: BUS, every: 2s }
  probes: { driver: ads1115, bus: BUS, address: 0x49, channels: ["0", "3"], every: 2s }
  tanks:
    driver: ds18b20
    bus: BUS
    every: 4s
    sensors: [{ name: boiler, id: 28-060504030201 }, { name: freezer, id: 28-040506070809 }]
  cellar:
    driver: registers
    bus: BUS
    address: 0x1f
    every: 2s
    registers:
      - { name: temperature, register: 5, width: 16, mask: 0x1fff, signed: on, scale: 0.0625, unit: Cel, range: -40..125 }
  converter: # which has no driver, and is only read
    driver: registers
    bus: BUS
    address: 0x60
    every: 6s
    registers: [{ name: code, register: 0, width: 16, range: 0..65535 }]
  screen: { driver: ssd1306, bus: BUS }
  lamps: { driver: pca9685, bus: BUS, every: 2s, outputs: { lamp: { channel: 3, safe: off } }, max_on: 1h }
  relays:
    driver: pcf8574
    bus: BUS
    every: 2s
    outputs: { pump: { pin: P2, active_low: on, safe: off } }
    inputs: { door: { pin: P7, active_low: on } }
    max_on: 1h
  heater: { driver: relay, pin: GPIO17, safe: off, max_on: 1h }
  vent: { driver: relay, pin: GPIO22, safe: off, max_on: 1h }
agents:
  frost: { kind: rule, may: set heater/relay max 5m, when: outside/temperature < 5 Cel, hold: { heater/relay: on } }
  damp: { kind: rule, may: set vent/relay max 5m, when: cellar/temperature < 5 Cel, hold: { vent/relay: on } }
`, "BUS", m.Bus(t)))
	defer m.EndSite(t)
	devices := map[string]string{
		"bme280": "climate", "tmp102": "outside", "bh1750": "light", "ads1115": "probes", "ds2482": "tanks",
		"mcp9808": "cellar", "pca9685": "lamps", "pcf8574": "relays", "mcp4725": "converter", "ssd1306": "screen",
	}
	written := []string{"lamps", "relays", "screen"}
	holds := map[string]string{"heater": "outside", "vent": "cellar"} // by the rule's output: what it looks at
	all := []expectation{on("heater/relay", true), on("vent/relay", true), good("climate/temperature"), good("outside/temperature"), good("light/illuminance"),
		good("probes/voltage0"), good("tanks/boiler"), good("tanks/freezer"), good("cellar/temperature"), good("lamps/lamp"), good("relays/pump"), good("relays/door"),
		good("converter/code")}
	m.expect(t, all...)
	uptime := func() (seconds float64) {
		fmt.Sscan(m.ReadFile(t, "/proc/uptime"), &seconds)
		return seconds
	}
	for chip, hung := range devices {
		t.Log(chip, "hangs")
		m.SetState(t, chip, "hung")
		failed := false
		var showing chan error // what a text to the display comes to, which is asked for once more then
		show := func() {
			if hung != "screen" {
				return
			}
			showing = make(chan error, 1)
			c := m.Client(t, true)
			go func() {
				_, err := c.Ask(t.Context(), "show_text", []byte(`{"display":"screen/text","text":"hung"}`))
				showing <- err
			}()
		}
		show()
		for begun := uptime(); uptime() < begun+15; time.Sleep(200 * time.Millisecond) {
			select {
			case err := <-showing:
				failed = failed || err != nil
				show()
			default:
			}
			for point, r := range m.readings(t) {
				name, _, _ := strings.Cut(point, "/")
				switch {
				case name == hung:
					failed = failed || r.Quality == "fault"
				case holds[name] == hung:
				case r.Quality == "stale" && holds[name] == "" && slices.Contains(written, hung): // see above
				case r.Quality != "good", holds[name] != "" && r.Value != true:
					t.Errorf("while %s hangs, %s is %v, %s: %s", chip, point, r.Value, r.Quality, r.Why)
				}
			}
		}
		if !failed && hung != "lamps" { // it is read back each half minute only
			t.Errorf("%s hangs and is no fault", chip)
		}
		m.SetState(t, chip, "ok")
		if hung == "screen" {
			<-showing
			m.show(t, "screen/text", "shown")
		}
		m.expect(t, all...)
	}
}
