package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkFails checks a configuration of these devices, and looks for what it says; "" is
// for nothing.
func checkFails(t *testing.T, devices, says string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("site: { name: a }\ndevices:\n"+devices), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Check(file)
	switch {
	case err == nil && says != "":
		t.Errorf("%s: it passes", devices)
	case err != nil && (says == "" || !strings.Contains(err.Error(), "a.yaml:"+says)):
		t.Errorf("%s: %v; want %q", devices, err, says)
	}
}

func TestStopButtonIsChecked(t *testing.T) {
	const relay = "  pump: { driver: relay, pin: GPIO17, safe: off }\n"
	checkFails(t, relay+"  panic: { driver: stop-button, pin: GPIO26 }\n  other: { driver: stop-button, pin: P1_36, active_low: on }\n", "")
	checkFails(t, "  panic: { driver: stop-button, pin: GPIO17 }\n", "3:12: panic: there is no output that it could stop")
	checkFails(t, relay+"  panic: { driver: stop-button, pin: P1_11 }\n", "4:38: panic: GPIO17 is already taken by pump (line 3)")
}

func TestMultiplexerIsTheKernels(t *testing.T) {
	const (
		expander = "  relays: { driver: mcp23017, bus: i2c-1, outputs: { pump: { pin: GPA0, safe: off } } }\n"
		behind   = "  relays: { driver: mcp23017, bus: i2c-1/0x70:3, outputs: { pump: { pin: GPA0, safe: off } } }\n"
		sensor   = "  climate: { driver: bme280, bus: i2c-1/0x71:0 }\n"
		inputs   = "  door: { driver: mcp23017, bus: i2c-1, inputs: { open: { pin: GPA0 } } }\n"
	)
	checkFails(t, sensor+strings.ReplaceAll(expander, "i2c-1", "i2c-11"), "")
	checkFails(t, sensor+inputs, "")
	checkFails(t, behind, "3:31: relays: the multiplexer at 0x70 on i2c-1 has to be the kernel's, because relays has outputs there: write dtoverlay=i2c-mux,pca9548,addr=0x70")
	checkFails(t, expander+sensor, "4:30: climate: the multiplexer at 0x71 on i2c-1 has to be the kernel's, because relays has outputs there")
	checkFails(t, sensor+expander, "3:30: climate: the multiplexer at 0x71")
}
