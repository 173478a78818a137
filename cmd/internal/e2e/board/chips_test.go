//go:build e2e && linux

package board

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device/testbed"
)

// chips reads and moves the chips on the bus by the site's own drivers. Values set at the chips
// arrive, and moves are seen at the chip. A broken part is a fault of its own points, with advice,
// until it is repaired.
func (m *machine) chips(t *testing.T) {
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	bus := m.Bus(t)
	m.SetInput(t, "bme280", "temperature", 23.45, "humidity", 41.5, "pressure", 98765)
	m.SetInput(t, "tmp102", "temperature", -7.5)
	m.SetInput(t, "bh1750", "illuminance", 432)
	m.SetInput(t, "ads1115", "in0", 1.25, "in3", 0.5)
	m.SetInput(t, "mcp9808", "temperature", 11.25)
	m.SetInput(t, "ds18b20", "temperature", 18.0625)
	m.SetInput(t, "ds18b20-2", "temperature", -12.5)
	m.SetInput(t, "pcf8574", "low", 0x80)
	m.StartSite(t, strings.ReplaceAll(`site: { name: board }
devices:
  climate: { driver: bme280, bus: BUS, every: 1s }
  outside: { driver: tmp102, bus: BUS, every: 1s }
  light: { driver: bh1750, bus: BUS, every: 1s }
  probes: { driver: ads1115, bus: BUS, address: 0x49, channels: ["0", "3", "0-3"], every: 1s }
  tanks:
    driver: ds18b20
    bus: BUS
    every: 3s
    sensors: [{ name: boiler, id: 28-060504030201 }, { name: freezer, id: 28-040506070809 }]
  cellar:
    driver: registers
    bus: BUS
    address: 0x1f
    every: 1s
    id: { register: 6, width: 16, value: 0x54 }
    registers:
      - { name: temperature, register: 5, width: 16, mask: 0x1fff, signed: on, scale: 0.0625, unit: Cel, range: -40..125 }
  lamps:
    driver: pca9685
    bus: BUS
    every: 1s
    outputs: { lamp: { channel: 3, safe: off }, vent: { channel: 15, kind: servo, safe: 90 } }
    points: { lamp: { min_off: 0s }, vent: { min_off: 0s } }
  relays:
    driver: pcf8574
    bus: BUS
    every: 1s
    outputs: { pump: { pin: P2, active_low: on, safe: off } }
    inputs: { door: { pin: P7, active_low: on } }
    min_off: 0s
  screen: { driver: ssd1306, bus: BUS }
  host: { driver: host, every: 1s }
`, "BUS", bus))
	defer m.EndSite(t)
	all := []expectation{
		good("climate/temperature"), good("outside/temperature"), good("light/illuminance"), good("probes/voltage0"), good("tanks/boiler"),
		good("tanks/freezer"), good("cellar/temperature"), good("lamps/lamp"), good("relays/pump"), good("relays/door"), good("host/uptime"),
	}
	m.expect(t, append(all, near("climate/temperature", 23.45, 0.02), near("climate/humidity", 41.5, 0.1), near("climate/pressure", 98765, 10),
		near("outside/temperature", -7.5, 0.001), near("light/illuminance", 432, 1),
		near("probes/voltage0", 1.25, 0.001), near("probes/voltage3", 0.5, 0.001), near("probes/voltage0-3", 0.75, 0.001),
		near("cellar/temperature", 11.25, 0.001), near("tanks/boiler", 18.0625, 0.001), near("tanks/freezer", -12.5, 0.001), on("relays/door", true))...)
	m.SetInput(t, "bme280", "temperature", -3.21)
	m.SetInput(t, "mcp9808", "temperature", -20.5)
	m.SetInput(t, "ds18b20", "temperature", 85) // and not a chip's 85 °C after power-on
	m.SetInput(t, "pcf8574", "low", 0)
	m.expect(t, near("climate/temperature", -3.21, 0.02), near("cellar/temperature", -20.5, 0.001), near("tanks/boiler", 85, 0.001), on("relays/door", false))
	m.moved(t)

	t.Log("chips that do not answer")
	for _, chip := range []string{"bme280", "mcp9808", "pcf8574"} {
		m.SetState(t, chip, "unresponsive")
	}
	m.expect(t, fault("climate/temperature", "nothing answers at 0x76 on "+bus), fault("climate/pressure", "nothing answers"),
		fault("cellar/temperature", "nothing answers at 0x1f"), fault("relays/door", "nothing answers at 0x20"), good("outside/temperature"), good("tanks/boiler"))
	if exit, doctor, _ := m.Run(t, "/agentsite", "doctor", "--data", "/data"); exit != 1 || !strings.Contains(doctor, "problem: climate: ") || !strings.Contains(doctor, bus+"/0x76") {
		t.Errorf("the doctor ended with %d:\n%s", exit, doctor)
	}
	for _, chip := range []string{"bme280", "mcp9808", "pcf8574"} {
		m.SetState(t, chip, "ok")
	}
	m.expect(t, all...)

	t.Log("a chip that loses its supply for a moment while an output is on")
	m.UseTool(t, "set_level", `{"output":"lamps/lamp","value":25,"for_seconds":60}`)
	m.SetState(t, "pca9685", "absent")
	m.SetState(t, "pca9685", "ok")
	begun := time.Now()
	m.expect(t, near("lamps/lamp", 0, 0)) // read back: it is at safe, and its lease is over
	t.Logf("known after %.1f s", time.Since(begun).Seconds())
	harness.WaitFor(t, 20*time.Second, "the chip is set up again", func() bool { return m.pwm(t) == atSafe })
	// The look that is made each second may fall into the moment itself.
	_, _, log := m.SiteProcess(t)
	if !strings.Contains(log, "lamps/lamp: it was left at 25 and reads 0") && !strings.Contains(log, "lamps/lamp: nothing answers at 0x40") {
		t.Errorf("the log does not say so:\n%s", log)
	}

	t.Log("a chip that loses its supply for longer")
	m.UseTool(t, "set_level", `{"output":"lamps/lamp","value":25,"for_seconds":60}`)
	m.SetState(t, "pca9685", "absent")
	m.expect(t, fault("lamps/lamp", "nothing answers at 0x40"), fault("lamps/vent", "nothing answers at 0x40"), good("relays/pump"))
	m.SetState(t, "pca9685", "ok")
	m.expect(t, near("lamps/lamp", 0, 0), near("lamps/vent", 90, 0))
	if got := m.pwm(t); got != atSafe {
		t.Errorf("they do %+v", got)
	}

	t.Log("a wrong check sum")
	m.SetInput(t, "ds18b20", "crc", 1)
	m.expect(t, fault("tanks/boiler", "28-060504030201 is wrong"), good("tanks/freezer"))
	m.SetInput(t, "ds18b20", "crc", 0)
	m.expect(t, near("tanks/boiler", 85, 0.001))

	t.Log("a bus whose line is held low")
	m.SetStuck(t, true)
	m.expect(t, fault("climate/temperature", "SDA"), fault("cellar/temperature", "SDA"), fault("tanks/boiler", "SDA"), fault("relays/door", "SDA"), good("host/uptime"))
	m.SetStuck(t, false)
	m.expect(t, all...)

	t.Log("a bridge that is unplugged while an output is on, and plugged in again")
	m.UseTool(t, "switch_output", `{"output":"relays/pump","on":true,"for_seconds":3}`)
	m.pump(t, true)
	m.SetPlugged(t, false)
	m.expect(t, fault("climate/temperature", "plug its adapter in"), fault("relays/door", "plug its adapter in"), fault("tanks/boiler", "plug its adapter in"),
		fault("relays/pump", ""), good("host/uptime"))
	t.Logf("meanwhile an output at rest is said to be %v", m.readings(t)["lamps/lamp"])
	m.SetInput(t, "bme280", "temperature", 12.34)
	m.SetPlugged(t, true)
	m.expect(t, append(all, near("climate/temperature", 12.34, 0.02))...)
	m.pump(t, false)

	t.Log("a scan beside the site")
	var outputs any
	writes := m.ReadChip(t, "pcf8574", &outputs)
	m.scanned(t)
	if exit, _, said := m.Run(t, "/agentsite", "scan", "--probe", "0x20", "--data", "/data"); exit != 5 || !strings.Contains(said, "relays") {
		t.Errorf("a scan that may write where an output is ended with %d: %s", exit, said)
	}
	if again := m.ReadChip(t, "pcf8574", &outputs); again > writes {
		t.Errorf("the scan wrote to the PCF8574 %d times", again-writes)
	}

	m.resident(t, 10)
}

// moved moves outputs on the bus, looks at what the chips make of it, and waits until
// their time is over.
func (m *machine) moved(t *testing.T) {
	m.UseTool(t, "set_level", `{"output":"lamps/lamp","value":60,"for_seconds":4}`)
	m.UseTool(t, "set_level", `{"output":"lamps/vent","value":180,"for_seconds":4}`)
	m.UseTool(t, "switch_output", `{"output":"relays/pump","on":true,"for_seconds":4}`)
	if got := m.pwm(t); got != (pwm{60, 20}) {
		t.Errorf("moved, and they do %+v", got)
	}
	m.pump(t, true)
	harness.WaitFor(t, 20*time.Second, "the lamp and the servo are safe again", func() bool { return m.pwm(t) == atSafe })
	m.pump(t, false)
	m.show(t, "screen/text", "23.5 °C")
}

// pwm is the rounded state of the chip's outputs: the duty cycle of the lamp in percent, and the
// length of the servo's pulse in tenths of a millisecond.
type pwm struct{ lamp, vent float64 }

var atSafe = pwm{0, 15}

func (m *machine) pwm(t testing.TB) pwm {
	t.Helper()
	var outputs testbed.PWM
	m.ReadChip(t, "pca9685", &outputs)
	return pwm{math.Round(100 * outputs.On[3]), math.Round(10 * 1000 * outputs.On[15] / outputs.Hz)}
}

// pump waits until the pump's pin is on, which is low, or not.
func (m *machine) pump(t testing.TB, on bool) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, fmt.Sprintf("the pump is on: %v", on), func() bool {
		var expander struct{ Pins byte }
		m.ReadChip(t, "pcf8574", &expander)
		return (expander.Pins&4 == 0) == on
	})
}

// show shows a text and looks at the glass.
func (m *machine) show(t testing.TB, display, text string) {
	t.Helper()
	var before, after testbed.Screen
	m.ReadChip(t, "ssd1306", &before)
	m.UseTool(t, "show_text", fmt.Sprintf(`{"display":%q,"text":%q}`, display, text))
	m.ReadChip(t, "ssd1306", &after)
	if !after.On || bytes.Equal(before.Memory, after.Memory) {
		t.Errorf("the display is on: %v, and its memory is as before: %v", after.On, bytes.Equal(before.Memory, after.Memory))
	}
}
