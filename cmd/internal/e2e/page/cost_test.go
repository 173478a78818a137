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

// cost is what the processes of a site have used up.
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

// least measures sites side by side, several times for the length of a round of their sensors, and returns the
// least cost in a second of each: the machine wakes them up for its own reasons, too.
func least(t *testing.T, sites ...*harness.Site) []cost {
	t.Helper()
	all := make([]cost, len(sites))
	for round := range harness.Workload(3, 12) { // each has to be long enough for a round of the sensors
		const length = 10 * time.Second
		before := make([]cost, len(sites))
		for i, site := range sites {
			before[i] = costOf(t, site)
		}
		time.Sleep(length) // what is measured
		for i, site := range sites {
			now := costOf(t, site)
			now.woken = (now.woken - before[i].woken) / length.Seconds()
			now.cpu = (now.cpu - before[i].cpu) / time.Duration(length.Seconds())
			if round == 0 {
				all[i] = now
			}
			all[i].woken, all[i].cpu = min(all[i].woken, now.woken), min(all[i].cpu, now.cpu)
		}
	}
	return all
}

// TestCost: an open page costs a site with thirty devices at most two wake-ups and 1 ms of the processor in a
// second, and while nobody sees the page it asks for nothing. The site runs as by the service, beside one without
// a page.
func TestCost(t *testing.T) {
	t.Parallel()
	harness.AsService(t)
	_, devices, _ := strings.Cut(harness.ThirtyDevices("10s"), "devices:\n")
	bare := claimed(t, harness.NewPerson(t), harness.TempDir(t), "shed", "127.0.0.1:0", devices)
	site, _, _, b := openShed(t, devices)
	for _, view := range []string{"house", "site?s=shed"} {
		b.show(view)
		all := least(t, site, bare)
		t.Logf("in a second, %s: %v, without a page %v", view, all[0], all[1])
		if all[0].woken > all[1].woken+2 || all[0].cpu > all[1].cpu+time.Millisecond {
			t.Errorf("with the page at %s the site uses %v in a second, without one %v", view, all[0], all[1])
		}
	}
	// Headless, no tab hides another.
	run[bool](b, `(() => {
		Object.defineProperty(document, "hidden", { value: true });
		document.dispatchEvent(new Event("visibilitychange"));
		performance.clearResourceTimings();
		window.hid = performance.now();
		return true;
	})()`)
	all := least(t, site, bare)
	t.Logf("in a second, hidden: %v, without a page %v", all[0], all[1])
	const since = `performance.getEntriesByType("resource").filter(e => e.startTime > window.hid).length`
	if asked := run[int](b, since); asked > 0 {
		t.Errorf("a page that nobody sees asks %d times", asked)
	}
	if all[0].woken > all[1].woken+0.5 || all[0].cpu > all[1].cpu+200*time.Microsecond {
		t.Errorf("with a page that nobody sees the site uses %v in a second, without one %v", all[0], all[1])
	}
}
