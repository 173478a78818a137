//go:build e2e && linux

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRaspberryPi boots a Raspberry Pi's own kernel on QEMU's emulation of the board.
// That has the processor's lines, of which nobody outside can move one, and before
// QEMU 9 no I2C: the kernel finds its bus stuck.
func TestRaspberryPi(t *testing.T) {
	dir := need(t, "the emulated board", testbedDir)
	m := boot(t, 90*time.Second, "", "console=ttyAMA1,115200 dwc_otg.lpm_enable=0",
		"-M", "raspi3b", "-kernel", filepath.Join(dir, "rpi/vmlinuz"), "-dtb", filepath.Join(dir, "rpi/board.dtb"),
		"-device", "usb-net,netdev=net0")
	if model := m.file(t, "/proc/device-tree/model"); !strings.HasPrefix(model, "Raspberry Pi 3 Model B") {
		t.Errorf("the board is %q", model)
	}
	m.put(t, "/agentsite.yaml", `site: { name: pi }
devices:
  host: { driver: host, every: 1s }
  relay: { driver: relay, pin: GPIO17, safe: off, min_off: 0s }
  bell: { driver: button, pin: P1_13 }
`)
	exit, doctor, stderr := m.run(t, "/agentsite", "doctor", "--data", "/data")
	t.Logf("the doctor:\n%s%s", doctor, stderr)
	// What to write into config.txt is for a Raspberry Pi only.
	if exit != 0 || !strings.Contains(doctor, "add dtparam=strict_gpiod to /boot/") || strings.Contains(doctor, "dtparam=i2c_arm=on") {
		t.Errorf("the doctor ended with %d", exit)
	}
	exit, scan, stderr := m.run(t, "/agentsite", "scan", "--data", "/data")
	t.Logf("the scan:\n%s%s", scan, stderr)
	stuck := exit == 6 && strings.Contains(stderr, "i2c-1 is stuck")
	if exit != 0 && !stuck || !strings.Contains(scan, "54 GPIO lines of pinctrl-bcm2835") || !strings.Contains(scan, "{ driver: thermal, zone: cpu-thermal }") {
		t.Errorf("the scan ended with %d", exit)
	}

	m.site(t, m.file(t, "/agentsite.yaml"))
	defer m.end(t)
	m.expect(t, good("host/uptime"), on("relay/relay", false), good("bell/pressed"))
	for _, on := range []bool{true, false, true} {
		m.use(t, "switch_output", fmt.Sprintf(`{"output":"relay/relay","on":%v,"for_seconds":2}`, on))
		if got := m.gpio17(t); !strings.Contains(got, map[bool]string{true: "out hi", false: "out lo"}[on]) {
			t.Errorf("GPIO17 should be high: %v, and is %q", on, got)
		}
	}
	until(t, 20*time.Second, "GPIO17 is low again", func() bool { return strings.Contains(m.gpio17(t), "out lo") })
	m.resident(t, 10)
}

// gpio17 is what the kernel says of GPIO17; its level it reads from the processor.
func (m *machine) gpio17(t testing.TB) string {
	t.Helper()
	for line := range strings.Lines(m.file(t, "/sys/kernel/debug/gpio")) {
		if strings.Contains(line, "(GPIO17 ") {
			return line
		}
	}
	t.Fatal("the kernel knows of no GPIO17")
	return ""
}
