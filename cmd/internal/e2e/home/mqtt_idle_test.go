//go:build e2e

package home

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
)

// TestIdleBroker: an idle site with a broker wakes up at most 0.2 times a second more than one without: for a ping and
// its answer each twenty seconds. It takes most of a minute, in which there are two pings. Three sites of each kind run
// at the same time, the least counts, and it is measured up to three times: the machine wakes a process up for its own
// reasons, too.
func TestIdleBroker(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	b := startBroker(t)
	b.anonymous()
	without := fmt.Sprintf("site: { name: house }\nowner: %q\nhttp: { https: none }\ndevices:\n  lamp: { driver: sim, model: relay }\n", identity.New().ID())
	with := without + fmt.Sprintf("mqtt: { broker: \"mqtt://127.0.0.1:%s\", may: 'read *, set lamp' }\n", b.port)
	var pids [6]int
	for i := range pids {
		s := &site{Site: harness.Start(t, []string{without, with}[i%2], program)}
		if pids[i] = s.Cmd.Process.Pid; i%2 == 1 {
			s.says(t, "it tells")
		}
	}
	for try := 1; ; try++ {
		length := harness.Workload(45*time.Second, 5*time.Minute)
		var of [2][]float64
		for i, n := range wakeups(t, pids[:], length) {
			of[i%2] = append(of[i%2], float64(n)/length.Seconds())
		}
		alone, bridged := slices.Min(of[0]), slices.Min(of[1])
		t.Logf("%.2f wake-ups a second without a broker, %.2f with one (the least of three)", alone, bridged)
		if bridged <= alone+0.2 {
			return
		}
		if try == 3 {
			t.Fatal("an idle broker costs too much")
		}
	}
}

// wakeups returns in how many tenths of a second each process ran. What the runtime does within one is one wake-up.
func wakeups(t *testing.T, pids []int, length time.Duration) []int {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, all := make([]float64, len(pids)), make([]int, len(pids))
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		for i, pid := range pids {
			if now := harness.VoluntarySwitches(t, pid); now != last[i] {
				last[i] = now
				all[i]++
			}
		}
	}
	return all
}
