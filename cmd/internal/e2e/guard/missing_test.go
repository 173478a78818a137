//go:build e2e

package guard

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"golang.org/x/sys/unix"
)

// pseudoTerminal is a serial port that a test has both ends of; it returns the end that a
// program opens.
func pseudoTerminal(t *testing.T) (port string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED: this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/pts/%d", n)
}

// TestOneBadDevice: a device that cannot be opened, because another program has its port, is
// reported as missing. All others are there, and it too once the other program ends.
func TestOneBadDevice(t *testing.T) {
	port := pseudoTerminal(t)
	other, err := os.OpenFile(port, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := harness.Start(t, "site: { name: shed }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0 }\n  den: { driver: sim, model: climate }\n"+
		"  place: { driver: gps, port: "+port+", every: 5s }\n", harness.Need(t, "the program", harness.Program))
	c := r.Client(t, false)
	ask := func(tool, args string) string {
		t.Helper()
		a, err := c.Ask(t.Context(), tool, []byte(args))
		if err != nil {
			t.Fatal(tool, err)
		}
		return string(a.JSON)
	}
	const theirs = "another program"
	if status := ask("site_status", `{}`); !strings.Contains(status, theirs) {
		t.Errorf("nothing says what is wrong: %s", status)
	}
	if points := ask("read_points", `{"points":["den/temperature"]}`); !strings.Contains(points, `"good"`) {
		t.Error(points)
	}
	harness.WaitFor(t, time.Minute, "the relay switches", func() bool {
		_, err := c.Ask(t.Context(), "switch_output", []byte(`{"output":"box/relay","on":true,"for_seconds":5}`))
		return err == nil
	})
	other.Close()
	harness.WaitFor(t, time.Minute, "the port is opened again", func() bool { return !strings.Contains(ask("site_status", `{}`), theirs) })
}
