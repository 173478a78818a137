//go:build e2e && linux

package board

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// stopButton tests an emergency stop on a line. An open line is pulled up by the board's own
// resistor, as by a pressed button or a broken wire. It works while the site is frozen, and before
// the guard's timeout for a silent site.
func (m *machine) stopButton(t *testing.T) {
	const config = `site: { name: board }
devices:
  lamp: { driver: gpio-out, pin: GPIO22, safe: off, min_off: 0s, max_on: 1h }
  mushroom: { driver: stop-button, pin: GPIO27, every: 1s }
`
	m.StartSite(t, config)
	const lamp, mushroom = 22, 27
	refused := func(says string) {
		t.Helper()
		answer, err := m.Client(t, true).Ask(t.Context(), "switch_output", []byte(`{"output":"lamp/switch","on":true}`))
		if err == nil || !strings.Contains(err.Error(), says) || m.Level(t, lamp) {
			t.Errorf("GPIO22 is high: %v; a move says %s %v; want %s", m.Level(t, lamp), answer.JSON, err, says)
		}
	}
	reset := func() (int, string) {
		exit, _, said := m.Run(t, "/agentsite", "reset", "--data", "/data")
		return exit, said
	}
	t.Log("nothing is wired to it")
	refused("mushroom/pressed is pressed")
	if exit, said := reset(); exit == 0 || !strings.Contains(said, "mushroom/pressed is pressed") {
		t.Errorf("reset ends with %d: %s", exit, said)
	}
	m.Pull(t, mushroom, false)
	refused("agentsite reset")

	var took []time.Duration
	for _, still := range []bool{false, true, false, true, true} {
		press := func() time.Duration {
			m.expect(t, on("mushroom/pressed", false))
			if exit, said := reset(); exit != 0 {
				t.Fatalf("reset ends with %d: %s", exit, said)
			}
			m.UseTool(t, "switch_output", `{"output":"lamp/switch","on":true,"for_seconds":600}`)
			m.WaitForLine(t, lamp, true)
			if still {
				m.tap(syscall.SIGSTOP)
			}
			begun := time.Now()
			m.Pull(t, mushroom, true)
			m.WaitForLine(t, lamp, false)
			switched := time.Since(begun)
			if still {
				m.tap(syscall.SIGCONT)
			}
			m.expect(t, on("mushroom/pressed", true))
			m.Pull(t, mushroom, false)
			refused("agentsite reset")
			return switched
		}
		// The guard takes a silent button for pressed after 700 ms.
		took = append(took, harness.CheckOrdinaryDeadline(t, 700*time.Millisecond, press))
	}
	harness.LogDurations(t, "from before the line is pulled until it is asked how the lamp's is", took)
	if exit, said := reset(); exit != 0 {
		t.Errorf("reset ends with %d: %s", exit, said)
	}
	m.EndSite(t)

	// The button is not pressed, so that no start after a kill stops anything. A request of a
	// simulated line sets its pull, whatever was wired to it.
	wired := strings.Replace(config, "every: 1s", "every: 1s, pull: down", 1)
	m.StartSite(t, wired)
	for range harness.Workload(2, 20) {
		m.lit(t)
		m.Signal(t, syscall.SIGKILL)
		m.StartSite(t, wired)
	}
	m.lit(t)
	m.EndSite(t)
}

// tap signals the site's process and does not wait for its end.
func (m *machine) tap(s syscall.Signal) {
	m.AskWithin(500*time.Millisecond, "POST", "/signal", nil, "number", fmt.Sprint(int(s)))
}
