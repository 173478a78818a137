//go:build e2e

// Package guard tests that outputs become safe, whatever is killed, stopped, full or wrong.
package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestKilled: whatever is killed or stops, the relay goes off.
func TestKilled(t *testing.T) {
	t.Run("the site", func(t *testing.T) {
		var all []time.Duration
		for range harness.Workload(4, 200) {
			all = append(all, harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
				r := harness.StartRelay(t)
				r.SwitchOn(t)
				r.Kill(t)
				return r.WaitForOff()
			}))
		}
		harness.LogDurations(t, "killed to safe", all)
	})
	t.Run("the site stands still", func(t *testing.T) {
		r := harness.StartRelay(t)
		var all []time.Duration
		for range harness.Workload(4, 200) {
			all = append(all, harness.CheckDeadline(t, 1500*time.Millisecond, func() time.Duration {
				r.SwitchOn(t)
				r.Cmd.Process.Signal(syscall.SIGSTOP)
				defer r.Cmd.Process.Signal(syscall.SIGCONT)
				return r.WaitForOff()
			}))
		}
		harness.LogDurations(t, "stopped to safe", all)
		r.SwitchOn(t) // and all is well again
	})
	t.Run("the guard", func(t *testing.T) {
		r := harness.StartRelay(t)
		var known, safe []time.Duration
		for range harness.Workload(4, 200) {
			known = append(known, harness.CheckDeadline(t, 500*time.Millisecond, func() time.Duration {
				r.SwitchOn(t)
				begun := time.Now()
				syscall.Kill(r.Guard(t), syscall.SIGKILL)
				for {
					_, answer := r.Post(t, harness.ToolCall("read_points", `{"points":["box/relay"]}`))
					if !strings.Contains(answer, `"value":true`) {
						took := time.Since(begun)
						r.WaitForOff()
						safe = append(safe, time.Since(begun))
						return took
					}
				}
			}))
		}
		harness.LogDurations(t, "killed to known", known)
		harness.LogDurations(t, "killed to safe, by the next one", safe)
		if safe[len(safe)-1] > 2*time.Second { // as long as one may take that only stands still
			t.Error("the next one was not there in time")
		}
	})
	t.Run("the guard stands still", func(t *testing.T) {
		r := harness.StartRelay(t)
		var all []time.Duration
		for range harness.Workload(4, 200) {
			all = append(all, harness.CheckDeadline(t, 2*time.Second, func() time.Duration {
				r.SwitchOn(t)
				syscall.Kill(r.Guard(t), syscall.SIGSTOP)
				return r.WaitForOff()
			}))
		}
		harness.LogDurations(t, "stopped to replaced and safe", all)
		r.SwitchOn(t)
	})
	t.Run("both", func(t *testing.T) {
		for range harness.Workload(4, 200) {
			r := harness.StartRelay(t)
			r.SwitchOn(t)
			guard := r.Guard(t)
			r.Cmd.Process.Signal(syscall.SIGSTOP) // so that it starts no other
			syscall.Kill(guard, syscall.SIGKILL)
			r.Kill(t)
			if r.State() != "on" {
				t.Fatal("nobody is left, and the relay is off: this shows nothing")
			}
			if out, err := r.CLI(t, "safe"); err != nil || r.State() != "off" {
				t.Fatalf("%s %v, and the relay is %s", out, err, r.State())
			}
		}
	})
	t.Run("a guard that hangs, and no site", func(t *testing.T) {
		r := harness.StartRelay(t)
		r.SwitchOn(t)
		syscall.Kill(r.Guard(t), syscall.SIGSTOP)
		r.Kill(t)
		if out, err := r.CLI(t, "safe"); err != nil || r.State() != "off" {
			t.Errorf("%s %v, and the relay is %s", out, err, r.State())
		}
	})
}

// busy keeps all processors busy until end is called.
func busy(t *testing.T) (end func()) {
	t.Helper()
	var all []*exec.Cmd
	for range runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
	}
}

// TestNoFalseTrip: under full load of requests and of everything else, a lease that is
// renewed lasts.
func TestNoFalseTrip(t *testing.T) {
	r := harness.StartRelay(t)
	r.SwitchOn(t)
	defer busy(t)()
	length := time.Duration(harness.Workload(10, 600)) * time.Second
	end := time.Now().Add(length)
	var asking sync.WaitGroup
	var asked atomic.Int64
	for range 8 {
		asking.Go(func() {
			for time.Now().Before(end) {
				if code, answer := r.Post(t, harness.ToolCall("read_points", `{"points":["box/relay"]}`)); code == 200 && !strings.Contains(answer, `"value":true`) {
					t.Errorf("the relay went off: %s\n%s", answer, r.Log)
					return
				}
				asked.Add(1)
			}
		})
	}
	for time.Now().Before(end) {
		r.SwitchOn(t)
		time.Sleep(time.Second)
	}
	asking.Wait()
	if strings.Contains(r.Log.String(), "guard") {
		t.Errorf("the log speaks of the guard:\n%s", r.Log)
	}
	t.Logf("%d calls in %v", asked.Load(), length)
}

// TestSitesBeside: guards of several sites on one board, which all run before all that is
// not urgent, do not keep each other from running.
func TestSitesBeside(t *testing.T) {
	var all sync.WaitGroup
	for range runtime.NumCPU() + 1 {
		all.Go(func() {
			for range 20 {
				r := harness.StartRelay(t)
				if strings.Contains(r.Log.String(), "not known") {
					t.Errorf("outputs were not safe in time:\n%s", r.Log)
				}
				r.Stop(t)
			}
		})
	}
	all.Wait()
}

// TestLeaseEnds: measures how late a lease ends while all processors are busy, by the times that
// the simulated relays record, with the guard's priority and, only printed, without.
func TestLeaseEnds(t *testing.T) {
	site := harness.Need(t, "the program", harness.Program)
	harness.CheckDeadline(t, 20*time.Millisecond, func() time.Duration { return leases(t, "real-time", harness.Workload(160, 10_000), site) })
	leases(t, "not real-time", 80, "setpriv", "--bounding-set", "-sys_nice", site)
}

// leases lets about n of them end and returns by how much the last was late.
func leases(t *testing.T, class string, n int, argv ...string) time.Duration {
	const relays, length = 16, 250 * time.Millisecond
	var devices strings.Builder
	dir, err := os.MkdirTemp("/dev/shm", "relays") // a pin does not wait for a disk
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for i := range relays {
		fmt.Fprintf(&devices, "  r%d: { driver: sim, model: relay, min_off: 0s, max_on: 1h, outputs_file: %s/%[1]d }\n", i, dir)
	}
	r := harness.Start(t, "site: { name: relays }\ndevices:\n"+devices.String(), argv...)
	defer r.Stop(t)
	defer busy(t)()
	var late []time.Duration
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range relays {
		asking.Go(func() {
			witness := filepath.Join(dir, strconv.Itoa(i))
			for range n / relays {
				_, answer := r.Post(t, harness.ToolCall("switch_output", fmt.Sprintf(`{"output":"r%d/relay","on":true,"for_seconds":%v}`, i, length.Seconds())), "Mcp-Name", "switch_output")
				value, begun := harness.ReadWitness(witness)
				for value == "on" { // else it was over before this looked, which has no priority
					var at time.Time
					if value, at = harness.ReadWitness(witness); value == "off" {
						mu.Lock()
						late = append(late, at.Sub(begun)-length)
						mu.Unlock()
					}
					time.Sleep(10 * time.Millisecond)
				}
				if strings.Contains(answer, `"error":`) {
					t.Errorf("%s", answer)
				}
			}
		})
	}
	asking.Wait()
	if said := strings.Contains(r.Log.String(), "no real-time priority"); said != (class != "real-time") {
		t.Errorf("%s: the log says %s", class, r.Log)
	}
	slices.Sort(late)
	if len(late) < n/2 {
		t.Fatalf("the end of %d leases was seen, of %d", len(late), n)
	}
	p := func(share float64) time.Duration {
		return late[int(share*float64(len(late)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("%s: %d leases: late by median %v, p99.9 %v, at most %v", class, len(late), p(0.5), p(0.999), p(1))
	return late[len(late)-1]
}
