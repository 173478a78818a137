//go:build e2e && linux

package board

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestRaspberryPi boots a Raspberry Pi's own kernel on QEMU's emulation of the board. It has the
// processor's lines, which cannot be driven from outside, and before QEMU 9 no I2C: the kernel
// finds its bus stuck.
func TestRaspberryPi(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	m := boot(t, "", "console=ttyAMA1,115200 dwc_otg.lpm_enable=0",
		"-M", "raspi3b", "-kernel", filepath.Join(dir, "rpi/vmlinuz"), "-dtb", filepath.Join(dir, "rpi/board.dtb"),
		"-device", "usb-net,netdev=net0")
	if model := m.ReadFile(t, "/proc/device-tree/model"); !strings.HasPrefix(model, "Raspberry Pi 3 Model B") {
		t.Errorf("the board is %q", model)
	}
	m.WriteFile(t, "/agentsite.yaml", `site: { name: pi }
devices:
  host: { driver: host, every: 1s }
  relay: { driver: relay, pin: GPIO17, safe: off, min_off: 0s }
  bell: { driver: button, pin: P1_13 }
`)
	exit, doctor, stderr := m.Run(t, "/agentsite", "doctor", "--data", "/data")
	t.Logf("the doctor:\n%s%s", doctor, stderr)
	// Advice about config.txt is for a Raspberry Pi only.
	if exit != 0 || !strings.Contains(doctor, "add dtparam=strict_gpiod to /boot/") || strings.Contains(doctor, "dtparam=i2c_arm=on") {
		t.Errorf("the doctor ended with %d", exit)
	}
	exit, scan, stderr := m.Run(t, "/agentsite", "scan", "--data", "/data")
	t.Logf("the scan:\n%s%s", scan, stderr)
	stuck := exit == 6 && strings.Contains(stderr, "i2c-1 is stuck")
	if exit != 0 && !stuck || !strings.Contains(scan, "54 GPIO lines of pinctrl-bcm2835") || !strings.Contains(scan, "{ driver: thermal, zone: cpu-thermal }") {
		t.Errorf("the scan ended with %d", exit)
	}

	m.StartSite(t, m.ReadFile(t, "/agentsite.yaml"))
	defer m.EndSite(t)
	m.expect(t, good("host/uptime"), on("relay/relay", false), good("bell/pressed"))
	for _, on := range []bool{true, false, true} {
		m.UseTool(t, "switch_output", fmt.Sprintf(`{"output":"relay/relay","on":%v,"for_seconds":2}`, on))
		if got := m.GPIO17(t); !strings.Contains(got, map[bool]string{true: "out hi", false: "out lo"}[on]) {
			t.Errorf("GPIO17 should be high: %v, and is %q", on, got)
		}
	}
	harness.WaitFor(t, 20*time.Second, "GPIO17 is low again", func() bool { return strings.Contains(m.GPIO17(t), "out lo") })
	m.resident(t, 10)
}
