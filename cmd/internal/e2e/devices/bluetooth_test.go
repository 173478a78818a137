//go:build e2e && linux

package devices

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// advertisers are of each kind, after their public documents: address, kind of address, advertising data.
var advertisers = []string{
	"A4:C1:38:8D:18:B2 public 0201060A16D2FC4002C40903BF13",                                   // https://bthome.io/format
	"54:48:E6:8F:80:A5 public 0201061216D2FC41A47266C95F730011223378237214",                   // https://bthome.io/encryption
	"3C:2E:F5:01:02:03 public 0201061116D2FC40004E0164050000002D013F0000",                     // Shelly BLU Door/Window
	"A4:C1:38:01:02:03 public 12161A1803020138C1A4CA09BF13B00B640704",                         // pvvx, without flags
	"CB:B8:33:4C:88:4F random 0201061BFF99040512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F", // RuuviTag
	"CB:B8:33:4C:8F:4F random 02010617FF9904067FFF9C40FFFE27109C40FAFAFEFFFF074C8F4F",         // Ruuvi Air
}

const bluetoothConfig = `site: { name: board }
devices:
  living: { driver: bthome, address: A4:C1:38:8D:18:B2, inputs: [temperature, humidity], lost_after: 30s }
  locked: { driver: bthome, address: 54:48:E6:8F:80:A5, inputs: [temperature, humidity], key_file: /it.key }
  window: { driver: bthome, address: 3C:2E:F5:01:02:03, inputs: [window, battery], lost_after: 24h }
  cellar: { driver: pvvx, address: A4:C1:38:01:02:03 }
  sauna: { driver: ruuvi, address: CB:B8:33:4C:88:4F }
  office: { driver: ruuvi, address: CB:B8:33:4C:8F:4F, model: air }
`

// TestBluetooth is a site on an emulated board with BlueZ, Debian's kernel and an emulated controller on a serial line.
// What each kind of sensor advertises arrives as points, after a scan that heard none of them, among 300 others and
// from another adapter, and a scan offers it.
func TestBluetooth(t *testing.T) {
	dir := filepath.Join(harness.Need(t, "the emulated board", harness.TestbedDir), "bluetooth")
	m := harness.Boot(t, 90*time.Second, dir, "console=ttyAMA0",
		"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-kernel", filepath.Join(dir, "../virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
	run := func(args ...string) string {
		t.Helper()
		exit, stdout, stderr := m.Run(t, args...)
		if exit != 0 {
			t.Fatalf("%s: %d %s %s", args, exit, stdout, stderr)
		}
		return stdout
	}
	advertise := func(all []string) int {
		t.Helper()
		return harness.AskGuest[int](t, m, "POST", "/advertise", []byte(strings.Join(all, "\n")))
	}
	run("/usr/bin/dbus-daemon", "--config-file=/etc/bus.conf", "--fork") // it starts bluetoothd at the first call
	harness.AskGuest[any](t, m, "PUT", "/file", []byte("231d39c1d7cc1ab1aee224cd096db932\n"), "path", "/it.key", "secret",
		"true")
	m.StartSite(t, bluetoothConfig)
	defer m.EndSite(t)
	expect(t, m, "living/temperature", "fault", nil) // there is no adapter yet
	advertise(advertisers)
	begun := time.Now()
	for point, want := range map[string]any{
		"living/temperature": 25.0, "living/humidity": 50.55, "locked/temperature": 25.06, "window/window": true,
		"window/battery":     100.0,
		"cellar/temperature": 25.06, "cellar/voltage": 2.992, "sauna/temperature": 24.3, "sauna/pressure": 100044.0,
		"office/co2": 40000.0,
	} {
		expect(t, m, point, "good", want)
	}
	t.Logf("all kinds after %.0f s", time.Since(begun).Seconds())

	t.Log("a sensor that is gone, and one whose value changes")
	advertise(append([]string{strings.Replace(advertisers[3], "CA09", "2A0A", 1)}, advertisers[1:3]...))
	expect(t, m, "cellar/temperature", "good", 26.02)
	expect(t, m, "living/temperature", "fault", nil)

	t.Log("none of ours for so long that the scan is started again")
	advertise([]string{"C0:00:00:00:00:01 random 020106"})
	alone := time.Now()
	harness.WaitFor(t, 3*time.Minute, "two minutes", func() bool { return time.Since(alone) > 2*time.Minute })
	expect(t, m, "window/window", "good", true) // its lost_after is a day
	expect(t, m, "cellar/temperature", "good", 26.02)
	advertise(advertisers)
	for point, want := range map[string]any{"living/temperature": 25.0, "cellar/temperature": 25.06, "sauna/temperature": 24.3, "office/co2": 40000.0} {
		expect(t, m, point, "good", want)
	}

	t.Log("300 others; BlueZ itself is too slow for 2,000 on an emulated processor")
	before := memory(t, m)
	all := append([]string(nil), advertisers...)
	all[3] = strings.Replace(all[3], "CA09", "F209", 1)
	for i := range 300 {
		all = append(all, fmt.Sprintf("C0:00:00:00:%02X:%02X random 0201060A16D2FC4002C40903BF13", i/256, i%256))
	}
	start := advertise(all)
	expect(t, m, "cellar/temperature", "good", 25.46)
	harness.WaitFor(t, 4*time.Minute, "each was heard", func() bool { return advertise(nil)-start > 900 })
	all[3] = advertisers[3]
	advertise(all)
	expect(t, m, "cellar/temperature", "good", 25.06)
	expect(t, m, "sauna/temperature", "good", 24.3)
	after := memory(t, m)
	t.Logf("anonymous memory of the site: %.1f MB, then %.1f MB", before, after)
	if after > before+4 {
		t.Errorf("%.1f MB more", after-before)
	}

	t.Log("an adapter that is unplugged and plugged in again")
	harness.AskGuest[any](t, m, "POST", "/radio-off", nil)
	gone := time.Now()
	expect(t, m, "window/window", "fault", nil)
	t.Logf("told after %.1f s: %s", time.Since(gone).Seconds(), m.UseTool(t, "read_points", `{"points":["window/window"]}`))
	advertise(advertisers)
	expect(t, m, "window/window", "good", true)
	expect(t, m, "cellar/temperature", "good", 25.06)

	t.Log("a scan offers what is not in the configuration")
	m.WriteFile(t, "/other.yaml", strings.Join(strings.SplitAfter(bluetoothConfig, "\n")[:4], ""))
	offered := ""
	defer func() { t.Log(offered) }()
	harness.WaitFor(t, 3*time.Minute, "they are offered", func() bool {
		_, stdout, stderr := m.Run(t, "/agentsite", "scan", "--config", "/other.yaml")
		offered = stdout + stderr
		return strings.Contains(stdout, "driver: ruuvi, address: CB:B8:33:4C:8F:4F, model: air") && strings.Contains(stdout, "driver: pvvx, address: A4:C1:38:01:02:03") &&
			strings.Contains(stdout, "driver: bthome, address: 3C:2E:F5:01:02:03") && !strings.Contains(stdout,
			"A4:C1:38:8D:18:B2")
	})
}

// memory returns the anonymous memory of the site's process in MB.
func memory(t *testing.T, m *harness.Machine) float64 {
	t.Helper()
	pid, _, _ := m.SiteProcess(t)
	file := fmt.Sprintf("/proc/%d/status", pid)
	return harness.StatusLine(t, m.ReadFile(t, file), file, "RssAnon:") / 1024
}

// expect waits until a point has a quality and, if good, a value.
func expect(t *testing.T, m *harness.Machine, point, quality string, value any) {
	t.Helper()
	var got struct {
		Readings []struct {
			Point, Quality, Why string
			Value               any
		}
	}
	said := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s", point, said)
		}
	}()
	harness.WaitFor(t, 90*time.Second, fmt.Sprintf("%s is %s, %v", point, quality, value), func() bool {
		got.Readings = nil
		text := m.UseTool(t, "read_points", fmt.Sprintf(`{"points":[%q]}`, point))
		said = string(text)
		if err := json.Unmarshal(text, &got); err != nil || len(got.Readings) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		r := got.Readings[0]
		return r.Quality == quality && (value == nil || r.Value == value)
	})
}
