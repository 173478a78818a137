//go:build e2e && linux

package board

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
)

// header runs a site on the simulated lines of a Raspberry Pi's header. Moves are seen at the
// lines, and a subscriber is told of changes at the inputs.
func (m *machine) header(t *testing.T) {
	const config = `site: { name: board }
devices:
  relay: { driver: relay, pin: GPIO17, active_low: on, safe: off, min_off: 0s }
  bell: { driver: button, pin: GPIO27 }
  gate: { driver: button, pin: GPIO24, debounce: 200ms }
`
	m.Pull(t, bell, true)
	m.Pull(t, gate, true)
	m.StartSite(t, config)

	t.Log("an output")
	m.expect(t, on("relay/relay", false), on("bell/pressed", false), on("gate/pressed", false))
	m.WaitForLine(t, 17, true) // off, by a relay that a low level switches on
	m.UseTool(t, "switch_output", `{"output":"relay/relay","on":true,"for_seconds":60}`)
	if m.Level(t, 17) {
		t.Error("GPIO17 has not moved when the call returns")
	}
	m.UseTool(t, "release_output", `{"output":"relay/relay"}`)
	if !m.Level(t, 17) {
		t.Error("GPIO17 is not back when the call returns")
	}
	m.UseTool(t, "switch_output", `{"output":"relay/relay","on":true,"for_seconds":2}`)
	m.WaitForLine(t, 17, false)
	m.WaitForLine(t, 17, true)

	m.pressed(t)

	m.EndSite(t)
}

// The lines that somebody outside pulls.
const bell, gate = 27, 24

// pressed presses the buttons, bouncing and not, while somebody has subscribed to
// them.
func (m *machine) pressed(t *testing.T) {
	t.Log("inputs")
	events := m.subscribe(t, "bell/button", "gate/button")
	var took []time.Duration
	for i := range 20 {
		pressed := i%2 == 0
		begun := time.Now()
		m.Pull(t, bell, !pressed)
		n := next(t, events)
		took = append(took, n.at.Sub(begun))
		if n.point != "bell/button" || n.value != device.Bool(pressed) {
			t.Fatalf("%s is told to be %v when the button is %v", n.point, n.value, pressed)
		}
	}
	begun := time.Now()
	m.Level(t, bell)
	asking := time.Since(begun)
	slices.Sort(took)
	t.Logf("from before the line is pulled to the subscriber, with a debounce of 20 ms and a request to pull it (%.1f ms): %.1f ms median, %.1f ms at most, %d times",
		ms(asking), ms(took[len(took)/2]), ms(took[len(took)-1]), len(took))

	// Each bounce lasts a fraction of the debounce. The bell that follows shows that
	// no more is to come from the gate.
	var heard []string
	for _, pressed := range []bool{true, false} {
		levels := []string{"pull-down", "pull-up", "pull-down", "pull-up", "pull-down", "pull-up", "pull-down"}
		if !pressed {
			levels = append(levels, "pull-up")
		}
		harness.AskGuest[any](t, m.Machine, "PUT", "/file", []byte(strings.Join(levels, "\n")), "path", m.SimulatedLine(t, gate)+"pull", "pause", "10ms")
		n := next(t, events)
		heard = append(heard, fmt.Sprint(n.point, " ", n.value))
	}
	m.Pull(t, bell, false)
	heard = append(heard, next(t, events).point)
	if got := strings.Join(heard, ", "); got != "gate/button on, gate/button off, bell/button" {
		t.Errorf("what bounces came as %s", got)
	}
	m.Pull(t, bell, true)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// notification is a reading of a subscription; the first stands for its beginning.
type notification struct {
	point string
	value device.Value
	at    time.Time // here
}

// subscribe subscribes to points until the test ends.
func (m *machine) subscribe(t testing.TB, points ...string) <-chan notification {
	t.Helper()
	heard := make(chan notification, 100)
	ctx, cancel := context.WithCancel(t.Context())
	watching, ended := m.Client(t, true), make(chan error, 1)
	go func() {
		first := true
		ended <- watching.Watch(ctx, agents.Principal{}, agents.WatchRequest{Points: points}, func(u agents.Update) error {
			if first {
				first = false
				heard <- notification{}
				return nil
			}
			for _, r := range u.Readings {
				heard <- notification{r.Point, r.Value, time.Now()}
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		t.Logf("the subscription ended: %v", <-ended)
	})
	next(t, heard)
	return heard
}

func next(t testing.TB, all <-chan notification) notification {
	t.Helper()
	select {
	case n := <-all:
		return n
	case <-time.After(20 * time.Second):
		t.Fatal("20 s without a notification")
		return notification{}
	}
}
