//go:build e2e && linux

// Package board tests the released program on emulated boards with chips and lines.
package board

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestBoard is a site on an emulated board: the released program for arm64 under a
// stock kernel, with chips behind a USB bridge and simulated lines. It is driven
// from here, over the site's own HTTP. Each case plugs the bridge in and starts a site
// of its own, and leaves nothing behind: unplugging forgets what was bound.
func TestBoard(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	m := boot(t, filepath.Join(dir, "virt/modules"), "console=ttyAMA0",
		"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
	t.Run("simulated lines", m.simulatedLines)
	t.Run("lines", m.header)
	t.Run("ends", m.ends)
	t.Run("stop button", m.stopButton)
	t.Run("scan", m.scan)
	t.Run("first boot", m.firstBoot)
	t.Run("kernel's drivers", m.kernelDrivers)
	m.unmoved(t)
	t.Run("effect", m.effect) // it writes to a chip
	t.Run("chips", m.chips)
	t.Run("killed", m.killed)
}

// machine is an emulated board, and what the tests of boards ask of one.
type machine struct{ *harness.Machine }

func boot(t testing.TB, modules, words string, args ...string) *machine {
	t.Helper()
	return &machine{harness.Boot(t, 90*time.Second, modules, words, args...)}
}

// simulatedLines checks that the lines behave as a Raspberry Pi's: a released line keeps its level.
// And an input follows what is wired to it.
func (m *machine) simulatedLines(t *testing.T) {
	const chips = "/sys/class/gpio/"
	base := 0
	for _, name := range m.ListFolder(t, chips) {
		if strings.HasPrefix(name, "gpiochip") && m.ReadFile(t, chips+name+"/label") == "gpio-sim\n" {
			fmt.Sscan(m.ReadFile(t, chips+name+"/base"), &base)
		}
	}
	line := fmt.Sprint(base + 17)
	for _, high := range []bool{true, false} {
		m.WriteFile(t, chips+"export", line)
		m.WriteFile(t, chips+"gpio"+line+"/direction", map[bool]string{false: "low", true: "high"}[high])
		if m.Level(t, 17) != high {
			t.Error("GPIO17 does not follow")
		}
		m.WriteFile(t, chips+"unexport", line)
		if m.Level(t, 17) != high {
			t.Error("GPIO17 changed when it was released")
		}
	}
	if log := harness.AskGuest[string](t, m.Machine, "GET", "/kernel", nil); !strings.Contains(log, "gpio_sim: line 17 = 1 by ") {
		t.Errorf("the kernel did not log it:\n%s", log)
	}
	m.Pull(t, 27, true)
	m.WriteFile(t, chips+"export", fmt.Sprint(base+27))
	if got := m.ReadFile(t, fmt.Sprintf("%sgpio%d/value", chips, base+27)); got != "1\n" {
		t.Errorf("GPIO27, pulled up, is %q", got)
	}
	m.WriteFile(t, chips+"unexport", fmt.Sprint(base+27))
	m.Pull(t, 27, false)
}

// kernelDrivers reads chips with kernel drivers. Values set at the chips arrive, and a broken part
// is a fault of its own points, until it is repaired.
func (m *machine) kernelDrivers(t *testing.T) {
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	m.bind(t)
	m.SetInput(t, "bme280", "temperature", 23.45, "humidity", 41.5, "pressure", 98765)
	m.SetInput(t, "tmp102", "temperature", -7.5)
	m.SetInput(t, "bh1750", "illuminance", 432)
	m.SetInput(t, "ads1115", "in0", 1.25, "in3", 0.5)
	m.SetInput(t, "ds18b20", "temperature", 18.0625)
	m.SetInput(t, "ds18b20-2", "temperature", -12.5)
	m.WriteFile(t, "/agentsite.yaml", "site: { name: board }\ndevices:\n  host: { driver: host }\n") // nothing of it is in use
	m.finds(t, m.scanned(t), map[string]string{
		"1-wire/28-060504030201": "certain DS18B20", "1-wire/28-040506070809": "certain DS18B20",
		m.Bus(t) + "/0x76": "certain bme280", m.Bus(t) + "/0x49": "certain ads1015",
	})
	m.StartSite(t, `site: { name: board }
devices:
  climate: { driver: iio, name: bme280, every: 1s }
  outside: { driver: hwmon, name: tmp102, every: 1s }
  light: { driver: iio, name: bh1750, every: 1s }
  probes: { driver: iio, name: ads1015, every: 1s }
  boiler: { driver: w1, id: 28-060504030201, every: 3s }
  freezer: { driver: w1, id: 28-040506070809, every: 3s }
  host: { driver: host, every: 1s }
  greenhouse: { driver: sim, model: climate }
  relay: { driver: sim, model: relay }
  dimmer: { driver: sim, model: dimmer }
`)
	defer m.EndSite(t)
	m.expect(t,
		near("climate/temperature", 23.45, 0.02), near("climate/humidity", 41.5, 0.1), near("climate/pressure", 98765, 10),
		near("outside/temperature1", -7.5, 0.001), near("light/illuminance", 432, 1),
		near("probes/voltage0", 1.25, 0.001), near("probes/voltage3", 0.5, 0.001), near("probes/voltage0-3", 0.75, 0.001),
		near("boiler/temperature", 18.0625, 0.001), near("freezer/temperature", -12.5, 0.001), good("host/uptime"))

	m.SetInput(t, "bme280", "temperature", -3.21)
	m.SetInput(t, "tmp102", "temperature", 85)
	m.SetInput(t, "ds18b20", "temperature", 85) // and not a chip's 85 °C after power-on
	m.expect(t, near("climate/temperature", -3.21, 0.02), near("outside/temperature1", 85, 0.001), near("boiler/temperature", 85, 0.001))

	t.Log("a chip that does not answer")
	m.SetState(t, "bme280", "unresponsive")
	m.expect(t, fault("climate/temperature", ""), fault("climate/pressure", ""), good("outside/temperature1"), good("boiler/temperature"))
	m.SetState(t, "bme280", "ok")
	m.expect(t, good("climate/temperature"), good("climate/pressure"))

	t.Log("a wrong check sum")
	m.SetInput(t, "ds18b20", "crc", 1)
	m.expect(t, fault("boiler/temperature", "CRC"), good("freezer/temperature"))
	m.SetInput(t, "ds18b20", "crc", 0)
	m.expect(t, near("boiler/temperature", 85, 0.001))

	t.Log("a bus whose line is held low")
	m.SetStuck(t, true)
	m.expect(t, fault("climate/temperature", ""), fault("outside/temperature1", ""), fault("boiler/temperature", ""), good("host/uptime"))
	m.SetStuck(t, false)
	m.expect(t, good("climate/temperature"), good("outside/temperature1"), good("boiler/temperature"))

	t.Log("a bridge that is unplugged and plugged in again")
	m.SetPlugged(t, false)
	m.expect(t, fault("climate/temperature", "no iio device bme280"), fault("outside/temperature1", ""), fault("boiler/temperature", ""), good("host/uptime"))
	m.SetInput(t, "bme280", "temperature", 12.34)
	m.SetPlugged(t, true)
	m.bind(t)
	m.expect(t, near("climate/temperature", 12.34, 0.02), good("outside/temperature1"), good("light/illuminance"),
		good("probes/voltage0"), good("boiler/temperature"), good("freezer/temperature"))

	m.resident(t, 10)
}

// killed starts a site again that was killed, and has the board's own command line
// find it.
func (m *machine) killed(t *testing.T) {
	const config = "site: { name: board }\ndevices:\n  host: { driver: host, every: 1s }\n"
	m.StartSite(t, config)
	token := m.Token
	m.Signal(t, syscall.SIGKILL)
	m.StartSite(t, config)
	defer m.EndSite(t)
	if m.Token != token {
		t.Error("its callers' token is another one")
	}
	m.expect(t, good("host/uptime"))
	if exit, stdout, stderr := m.Run(t, "/agentsite", "read", "--data", "/data", "host/uptime"); exit != 0 || !strings.Contains(stdout, "host/uptime") {
		t.Errorf("%d %s %s", exit, stdout, stderr)
	}
}

// bind has Linux drive what it can drive of the bridge's chips.
func (m *machine) bind(t testing.TB) {
	t.Helper()
	bus := m.Bus(t)
	for address, chip := range map[string]string{"0x76": "bme280", "0x48": "tmp102", "0x23": "bh1750", "0x49": "ads1115", "0x18": "ds2482"} {
		m.WriteFile(t, "/sys/bus/i2c/devices/"+bus+"/new_device", chip+" "+address)
	}
	harness.WaitFor(t, 30*time.Second, "both thermometers are on the 1-Wire line", func() bool {
		return strings.Count(strings.Join(m.ListFolder(t, "/sys/bus/w1/devices"), " "), "28-") == 2
	})
	// Looking for more takes seconds through the bridge, again and again.
	m.WriteFile(t, "/sys/bus/w1/devices/w1_bus_master1/w1_master_search", "0")
}

// unmoved fails where someone moved the outputs that nobody may move by asking who is
// there.
func (m *machine) unmoved(t testing.TB) {
	t.Helper()
	var expander struct{ Pins byte }
	var converter struct{ Out int }
	if writes := m.ReadChip(t, "pcf8574", &expander); writes > 0 || expander.Pins != 0xff {
		t.Errorf("the PCF8574 was written to %d times and is at %#x", writes, expander.Pins)
	}
	if writes := m.ReadChip(t, "mcp4725", &converter); writes > 0 || converter.Out != 2048 {
		t.Errorf("the MCP4725 was written to %d times and is at %d", writes, converter.Out)
	}
}

// resident fails if the site has more than most MB of anonymous memory. The resident part of the
// program's file is only printed: the kernel's fault-around differs between versions, and these
// pages are evicted first.
func (m *machine) resident(t testing.TB, most float64) {
	t.Helper()
	pid, _, _ := m.SiteProcess(t)
	file := fmt.Sprintf("/proc/%d/status", pid)
	status := m.ReadFile(t, file)
	own := harness.StatusLine(t, status, file, "RssAnon:") / 1024
	t.Logf("%.1f MB resident, %.1f MB of it anonymous", harness.StatusLine(t, status, file, "VmRSS:")/1024, own)
	if own > most {
		t.Errorf("%.1f MB are anonymous; it may be %v", own, most)
	}
}

// expectation is the value that a point should get.
type expectation struct {
	point string
	what  string
	ok    func(reading) bool
}

func near(point string, value, tolerance float64) expectation {
	return expectation{point, fmt.Sprintf("%v ± %v", value, tolerance), func(r reading) bool {
		v, number := r.Value.(float64)
		return number && r.Quality == "good" && math.Abs(v-value) <= tolerance
	}}
}

func good(point string) expectation {
	return expectation{point, "good", func(r reading) bool { return r.Quality == "good" }}
}

// on expects a switch or a state to be on, or not.
func on(point string, is bool) expectation {
	return expectation{point, fmt.Sprint(is), func(r reading) bool { return r.Quality == "good" && r.Value == is }}
}

// fault expects why to be among the words that say why.
func fault(point, why string) expectation {
	return expectation{point, "a fault: " + why, func(r reading) bool { return r.Quality == "fault" && strings.Contains(r.Why, why) }}
}

// expect waits until all of the points say what they should.
func (m *machine) expect(t testing.TB, all ...expectation) {
	t.Helper()
	begun := time.Now()
	for {
		readings := m.readings(t)
		var wrong []string
		for _, e := range all {
			if r := readings[e.point]; !e.ok(r) {
				wrong = append(wrong, fmt.Sprintf("%s should be %s, and is %v, %s: %s", e.point, e.what, r.Value, r.Quality, r.Why))
			}
		}
		if len(wrong) == 0 {
			t.Logf("%.1f s for %d points", time.Since(begun).Seconds(), len(all))
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("after %v:\n%s", time.Since(begun), strings.Join(wrong, "\n"))
		}
		time.Sleep(200 * time.Millisecond) // the board has little to spare
	}
}

// reading is one of read_points.
type reading struct {
	Point, Quality, Why string
	Value               any
}

// readings are the latest of all points, by name.
func (m *machine) readings(t testing.TB) map[string]reading {
	t.Helper()
	var out struct{ Readings []reading }
	if err := json.Unmarshal(m.UseTool(t, "read_points", `{}`), &out); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]reading)
	for _, r := range out.Readings {
		all[r.Point] = r
	}
	return all
}
