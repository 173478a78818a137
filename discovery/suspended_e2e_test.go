//go:build e2e && linux

package discovery

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSuspendedIsBootTime: the time that a machine slept is by how much its boot time is ahead,
// which a time namespace can shift. Within a process it cannot be shifted: there the tests
// of what follows from it have a clock of their own.
func TestSuspendedIsBootTime(t *testing.T) {
	if os.Getenv("SLEPT") != "" {
		fmt.Println("slept", int(Suspended().Seconds()))
		return
	}
	before := int(Suspended().Seconds())
	c := exec.Command("unshare", "--time", "--fork", "--boottime", "100000", os.Args[0], "-test.run=TestSuspendedIsBootTime", "-test.v")
	c.Env = append(os.Environ(), "SLEPT=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "slept ")
	var got int
	if fmt.Sscan(text, &got); got-before < 99_999 || got-before > 100_001 {
		t.Errorf("it slept %d s, and %d s in a namespace that is 100000 s ahead", before, got)
	}
}
