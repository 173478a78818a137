//go:build e2e

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// cost counts the wake-ups and the processor time of a site's processes.
type cost struct {
	woken float64       // voluntary context switches
	cpu   time.Duration // of all threads
}

func (c cost) String() string { return fmt.Sprintf("%.2f wake-ups and %v", c.woken, c.cpu) }

// costOf returns the cost of a site and its guard until now.
func costOf(t *testing.T, site *harness.Site) (c cost) {
	t.Helper()
	for _, pid := range []int{site.Cmd.Process.Pid, site.Guard(t)} {
		c.woken += harness.VoluntarySwitches(t, pid)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread) // "" where the thread has ended
			var ns int64
			fmt.Sscan(string(text), &ns)
			c.cpu += time.Duration(ns)
		}
	}
	return c
}

// check fails the test where a site costs more by a second than another one and a limit. Both are measured side by
// side, three times for the length of a round of their sensors, and the least counts: the machine wakes them up for
// its own reasons, too. Where that is too much it is repeated, at most five times and with a line in the log.
func check(t *testing.T, what string, site, bare *harness.Site, limit cost) {
	t.Helper()
	sites := [2]*harness.Site{site, bare}
	var all, before [2]cost
	for round := 1; ; round++ {
		for i, of := range sites {
			before[i] = costOf(t, of)
		}
		const length = 10 * time.Second
		time.Sleep(length) // what is measured
		for i, of := range sites {
			now := costOf(t, of)
			now.woken = (now.woken - before[i].woken) / length.Seconds()
			now.cpu = (now.cpu - before[i].cpu) / time.Duration(length.Seconds())
			if round == 1 {
				all[i] = now
			}
			all[i].woken, all[i].cpu = min(all[i].woken, now.woken), min(all[i].cpu, now.cpu)
		}
		fine := all[0].woken <= all[1].woken+limit.woken && all[0].cpu <= all[1].cpu+limit.cpu
		switch rounds := harness.Workload(3, 12); {
		case round < rounds:
		case fine:
			t.Logf("in a second, %s: %v, without a page %v", what, all[0], all[1])
			return
		case round == rounds+5:
			t.Errorf("in a second, %s: %v, without a page %v, at most %v more", what, all[0], all[1], limit)
			return
		default:
			t.Logf("repeated, %s: %v, without a page %v", what, all[0], all[1])
		}
	}
}

// TestCost: an open page costs a site with thirty devices at most two wake-ups and 1 ms of the processor in a
// second, and while nobody sees the page it asks for nothing. The site runs as by the service, beside one without
// a page.
func TestCost(t *testing.T) {
	harness.AsService(t)
	_, devices, _ := strings.Cut(harness.ThirtyDevices("10s"), "devices:\n")
	bare := claimed(t, harness.NewPerson(t), harness.TempDir(t), "shed", "127.0.0.1:0", devices)
	site, _, _, b := openShed(t, devices)
	for _, view := range []string{"house", "site?s=shed"} {
		b.show(view)
		check(t, view, site, bare, cost{2, time.Millisecond})
	}
	// Headless, no tab hides another.
	run[bool](b, `(() => {
		Object.defineProperty(document, "hidden", { value: true });
		document.dispatchEvent(new Event("visibilitychange"));
		performance.clearResourceTimings();
		window.hid = performance.now();
		return true;
	})()`)
	check(t, "hidden", site, bare, cost{0.5, 200 * time.Microsecond})
	const since = `performance.getEntriesByType("resource").filter(e => e.startTime > window.hid).length`
	if asked := run[int](b, since); asked > 0 {
		t.Errorf("a page that nobody sees asks %d times", asked)
	}
}
