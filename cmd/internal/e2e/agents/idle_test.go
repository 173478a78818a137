//go:build e2e

package agents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/e2e/harness"
	nodeconfig "agentsite/node/config"
)

// idle starts three idle sites of each of two configurations. It returns how often one of each kind
// woke up in a second, with the last site of each. The machine wakes a process up for its own
// reasons, too: all run at the same time, and the least counts.
func idle(t *testing.T, configs [2]string, program string) (wakeups [2]float64, last [2]*harness.Site) {
	t.Helper()
	var sites [6]*harness.Site
	var counts [6]float64
	for i := range sites {
		sites[i] = harness.Start(t, configs[i%2], program)
	}
	time.Sleep(2 * time.Second) // the starts are over
	for i, site := range sites {
		counts[i] = -harness.VoluntarySwitches(t, site.Cmd.Process.Pid)
	}
	length := harness.Workload(8*time.Second, time.Minute)
	time.Sleep(length)
	var of [2][]float64
	for i, site := range sites {
		of[i%2] = append(of[i%2], (counts[i]+harness.VoluntarySwitches(t, site.Cmd.Process.Pid))/length.Seconds())
	}
	for i := range of {
		wakeups[i], last[i] = slices.Min(of[i]), sites[4+i]
	}
	return wakeups, last
}

// TestIdleModel: a model that nobody asks costs no request, and the site wakes up no more often.
func TestIdleModel(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	s := chattest.New(t, chattest.Plain, turns)
	with := fmt.Sprintf(config, s.Endpoint())
	without, _, _ := strings.Cut(with, "agents:")
	of, _ := idle(t, [2]string{without, with}, program)
	t.Logf("%.1f wake-ups a second without a model, %.1f with one (the least of three); it was asked %d times", of[0], of[1], s.Asked())
	if s.Asked() != 0 || of[1] > of[0]+1 {
		t.Error("an idle model costs something")
	}
}

// TestIdleProtocols: an idle site with all protocols wakes up no more often than a site without
// any, and has no goroutine for them.
func TestIdleProtocols(t *testing.T) {
	of := func(protocols string) string {
		return fmt.Sprintf("site: { name: house }\nhttp: { https: none }\nprotocols: [%s]\ndevices:\n  climate: { driver: sim, model: climate, every: 1s }\n", protocols)
	}
	all := strings.Join(nodeconfig.Protocols, ", ")
	wakeups, sites := idle(t, [2]string{of(""), of(all)}, harness.Need(t, "the program", harness.Program))
	var goroutines [2]int
	adapters := regexp.MustCompile(`agentsite/transport/(adapter|` + strings.Join(nodeconfig.Protocols, "|") + `)\b`)
	for i, site := range sites {
		if err := site.Cmd.Process.Signal(syscall.SIGQUIT); err != nil { // Go prints the stacks of all goroutines
			t.Fatal(err)
		}
		harness.WaitFor(t, 20*time.Second, "the stacks are printed", func() bool {
			return strings.Contains(site.Log.String(), "\nr0 ") || strings.Contains(site.Log.String(), "\nrax ")
		})
		site.Kill(t) // which it does not end well from
		stacks := site.Log.String()
		goroutines[i] = strings.Count(stacks, "\ngoroutine ")
		if at := adapters.FindString(stacks); at != "" {
			t.Errorf("a goroutine is in %s:\n%s", at, stacks)
		}
	}
	t.Logf("without protocols %.1f wake-ups a second and %d goroutines, with %s %.1f and %d (the least of three)", wakeups[0], goroutines[0], all, wakeups[1], goroutines[1])
	if wakeups[1] > wakeups[0]+1 || goroutines[0] < 5 || goroutines[1] > goroutines[0]+1 {
		t.Error("idle protocols cost something")
	}
}
