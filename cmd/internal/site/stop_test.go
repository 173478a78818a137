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
