//go:build e2e

package harness

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the user and system time of a process, in ticks of 10 ms (proc(5), stat 14
// and 15).
func CPUTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Status returns the number of a line of /proc/PID/status, in its own unit.
func Status(b testing.TB, pid int, key string) float64 {
	b.Helper()
	return StatusFile(b, fmt.Sprintf("/proc/%d/status", pid), key)
}

// StatusFile is Status for a file of the same form. It returns 0 where the file is gone, as
// that of an ended thread.
func StatusFile(b testing.TB, file, key string) float64 {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return 0 // a thread that has ended
	}
	return StatusLine(b, string(text), file, key)
}

// StatusLine returns the number in text's line that begins with key. It names file where there
// is none.
func StatusLine(b testing.TB, text, file, key string) float64 {
	b.Helper()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no %s in %s", key, file)
	return 0
}

// VoluntarySwitches returns the sum of the voluntary context switches of a process's threads.
func VoluntarySwitches(b testing.TB, pid int) (sum float64) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		b.Fatalf("no threads: %v", err)
	}
	for _, task := range tasks {
		sum += StatusFile(b, task, "voluntary_ctxt_switches:")
	}
	return sum
}

// AsService applies the timer slack of deploy/agentsite.service to processes that this goroutine
// starts from now on.
func AsService(t testing.TB) {
	t.Helper()
	unit, err := os.ReadFile("../../../../deploy/agentsite.service")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(?m)^TimerSlackNSec=(.*)$`).FindSubmatch(unit)
	if said == nil {
		t.Fatal("the unit does not say how exactly threads wait")
	}
	slack, err := time.ParseDuration(string(said[1]))
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // whose children have it too; it ends with the test or benchmark
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// FreePort returns a TCP port that nothing listens on. It is below the kernel's ephemeral
// ports, so that it stays free while a site restarts.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 20 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
