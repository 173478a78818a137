//go:build e2e

package e2e

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

	"golang.org/x/sys/unix"
)

// times is how often what must never fail is tried: a tenth of SOAK's.
func times(n int) int {
	if os.Getenv("SOAK") != "" {
		return 10 * n
	}
	return n
}

// punctual has the calling goroutine's thread run before others, as the guard does,
// where that is permitted; it stays locked to it.
func punctual() {
	runtime.LockOSThread()
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 5}, 0)
}

// within holds what measures to its limit, beside a bare sleeper of the guard's
// class: where that was late by more than a quarter of the limit, the machine was, and
// it is measured again.
func within(t *testing.T, limit time.Duration, measure func() time.Duration) time.Duration {
	t.Helper()
	for try := 1; ; try++ {
		var latest atomic.Int64
		ctx := make(chan struct{})
		var sleeping sync.WaitGroup
		sleeping.Go(func() {
			punctual()
			for {
				begun := time.Now()
				time.Sleep(5 * time.Millisecond)
				latest.Store(max(latest.Load(), int64(time.Since(begun)-5*time.Millisecond)))
				select {
				case <-ctx:
					return
				default:
				}
			}
		})
		took := measure()
		close(ctx)
		sleeping.Wait()
		late := time.Duration(latest.Load())
		if took <= limit {
			return took
		}
		if late <= limit/4 || try == 3 {
			t.Errorf("it took %v, more than %v; a bare sleeper was late by %v", took, limit, late)
			return took
		}
		t.Logf("repeated: it took %v, and a bare sleeper was late by %v", took, late)
	}
}

// relay is a site with one relay, whose state a file beside the processes shows as a
// pin would that keeps its level.
type relay struct {
	*running
	witness string
}

func startRelay(t *testing.T, devices ...string) *relay {
	t.Helper()
	config, witness := relayConfig(t, devices...)
	return &relay{start(t, config, need(t, "the program", program)), witness}
}

// relayConfig is a configuration with the relay and other devices.
func relayConfig(t *testing.T, devices ...string) (config, witness string) {
	witness = filepath.Join(folder(t), "outputs")
	devices = append([]string{"box: { driver: sim, model: relay, min_off: 0s, outputs_file: " + witness + " }"}, devices...)
	return "site: { name: relay }\ndevices:\n  " + strings.Join(devices, "\n  ") + "\n", witness
}

func (r *relay) on(t *testing.T) {
	t.Helper()
	until(t, 20*time.Second, "the relay switches", func() bool {
		code, answer := r.post(t, call("switch_output", `{"output":"box/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
		return code == 200 && strings.Contains(answer, `"seconds_left":`)
	})
	if r.shows() != "on" {
		t.Fatal("the relay is not on")
	}
}

func (r *relay) shows() string {
	value, _ := look(r.witness)
	return value
}

// look is what a witness of one output says, and when that was written.
func look(witness string) (value string, at time.Time) {
	b, _ := os.ReadFile(witness)
	words := strings.Fields(string(b))
	if len(words) != 3 {
		return "", at
	}
	n, _ := strconv.ParseInt(words[2], 10, 64)
	return words[1], time.Unix(0, n)
}

// off measures until the relay is off.
func (r *relay) off() time.Duration {
	begun := time.Now()
	for r.shows() != "off" && time.Since(begun) < 20*time.Second {
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

// guard is the process that drives the site's outputs.
func (r *running) guard(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Folder, "guard.lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// told prints the median, the 95th of a hundred and the longest of several times.
func told(t *testing.T, what string, all []time.Duration) {
	slices.Sort(all)
	n := func(i int) time.Duration { return all[i].Round(10 * time.Microsecond) }
	t.Logf("%s: %d times, median %v, p95 %v, longest %v", what, len(all), n(len(all)/2), n((95*len(all)+99)/100-1), n(len(all)-1))
}

// TestKilled: whatever is killed or stops, the relay goes off.
func TestKilled(t *testing.T) {
	t.Run("the site", func(t *testing.T) {
		var all []time.Duration
		for range times(20) {
			all = append(all, within(t, 100*time.Millisecond, func() time.Duration {
				r := startRelay(t)
				r.on(t)
				r.kill(t)
				return r.off()
			}))
		}
		told(t, "killed to safe", all)
	})
	t.Run("the site stands still", func(t *testing.T) {
		r := startRelay(t)
		var all []time.Duration
		for range times(20) {
			all = append(all, within(t, 1500*time.Millisecond, func() time.Duration {
				r.on(t)
				r.Cmd.Process.Signal(syscall.SIGSTOP)
				defer r.Cmd.Process.Signal(syscall.SIGCONT)
				return r.off()
			}))
		}
		told(t, "stopped to safe", all)
		r.on(t) // and all is well again
	})
	t.Run("the guard", func(t *testing.T) {
		r := startRelay(t)
		var known, safe []time.Duration
		for range times(20) {
			known = append(known, within(t, 500*time.Millisecond, func() time.Duration {
				r.on(t)
				begun := time.Now()
				syscall.Kill(r.guard(t), syscall.SIGKILL)
				for {
					_, answer := r.post(t, call("read_points", `{"points":["box/relay"]}`))
					if !strings.Contains(answer, `"value":true`) {
						took := time.Since(begun)
						r.off()
						safe = append(safe, time.Since(begun))
						return took
					}
				}
			}))
		}
		told(t, "killed to known", known)
		told(t, "killed to safe, by the next one", safe)
		if safe[len(safe)-1] > 2*time.Second { // as long as one may take that only stands still
			t.Error("the next one was not there in time")
		}
	})
	t.Run("the guard stands still", func(t *testing.T) {
		r := startRelay(t)
		var all []time.Duration
		for range times(20) {
			all = append(all, within(t, 2*time.Second, func() time.Duration {
				r.on(t)
				syscall.Kill(r.guard(t), syscall.SIGSTOP)
				return r.off()
			}))
		}
		told(t, "stopped to replaced and safe", all)
		r.on(t)
	})
	t.Run("both", func(t *testing.T) {
		for range times(20) {
			r := startRelay(t)
			r.on(t)
			guard := r.guard(t)
			r.Cmd.Process.Signal(syscall.SIGSTOP) // so that it starts no other
			syscall.Kill(guard, syscall.SIGKILL)
			r.kill(t)
			if r.shows() != "on" {
				t.Fatal("nobody is left, and the relay is off: this shows nothing")
			}
			if out, err := r.agentsite(t, "safe"); err != nil || r.shows() != "off" {
				t.Fatalf("%s %v, and the relay is %s", out, err, r.shows())
			}
		}
	})
	t.Run("a guard that hangs, and no site", func(t *testing.T) {
		r := startRelay(t)
		r.on(t)
		syscall.Kill(r.guard(t), syscall.SIGSTOP)
		r.kill(t)
		if out, err := r.agentsite(t, "safe"); err != nil || r.shows() != "off" {
			t.Errorf("%s %v, and the relay is %s", out, err, r.shows())
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
	r := startRelay(t)
	r.on(t)
	defer busy(t)()
	end := time.Now().Add(time.Duration(times(1)) * time.Minute)
	var asking sync.WaitGroup
	var asked atomic.Int64
	for range 8 {
		asking.Go(func() {
			for time.Now().Before(end) {
				if code, answer := r.post(t, call("read_points", `{"points":["box/relay"]}`)); code == 200 && !strings.Contains(answer, `"value":true`) {
					t.Errorf("the relay went off: %s\n%s", answer, r.Log)
					return
				}
				asked.Add(1)
			}
		})
	}
	for time.Now().Before(end) {
		r.on(t)
		time.Sleep(time.Second)
	}
	asking.Wait()
	if strings.Contains(r.Log.String(), "guard") {
		t.Errorf("the log speaks of the guard:\n%s", r.Log)
	}
	t.Logf("%d calls in %v", asked.Load(), time.Duration(times(1))*time.Minute)
}

// TestSitesBeside: guards of several sites on one board, which all run before all that is
// not urgent, do not keep each other from running.
func TestSitesBeside(t *testing.T) {
	var all sync.WaitGroup
	for range runtime.NumCPU() + 1 {
		all.Go(func() {
			for range 20 {
				r := startRelay(t)
				if strings.Contains(r.Log.String(), "not known to be safe") {
					t.Errorf("outputs were not safe in time:\n%s", r.Log)
				}
				r.Stop(t)
			}
		})
	}
	all.Wait()
}

// TestLeaseEnds: how late a lease ends while all processors are busy, by the times
// that the simulated relays write down; with the guard's priority and, only printed,
// without.
func TestLeaseEnds(t *testing.T) {
	site := need(t, "the program", program)
	within(t, 20*time.Millisecond, func() time.Duration { return leases(t, "real-time", times(1000), site) })
	leases(t, "not real-time", 200, "setpriv", "--bounding-set", "-sys_nice", site)
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
	r := start(t, "site: { name: relays }\ndevices:\n"+devices.String(), argv...)
	defer r.Stop(t)
	defer busy(t)()
	var late []time.Duration
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range relays {
		asking.Go(func() {
			witness := filepath.Join(dir, strconv.Itoa(i))
			for range n / relays {
				_, answer := r.post(t, call("switch_output", fmt.Sprintf(`{"output":"r%d/relay","on":true,"for_seconds":%v}`, i, length.Seconds())), "Mcp-Name", "switch_output")
				value, begun := look(witness)
				for value == "on" { // else it was over before this looked, which has no priority
					var at time.Time
					if value, at = look(witness); value == "off" {
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
