package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestUnmapIdle: the program's pages go, and what is needed comes back by itself.
func TestUnmapIdle(t *testing.T) {
	before := residentFile(t)
	if err := unmapIdle(); err != nil {
		t.Fatal(err)
	}
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of the program's pages were resident, and %d kB are", before, after)
	}
}

func residentFile(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "\nRssFile:")
	if _, err := fmt.Sscan(line, &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}
