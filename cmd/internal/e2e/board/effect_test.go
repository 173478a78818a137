//go:build e2e && linux

package board

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
)

// effect has a pump on a simulated line whose flow a converter measures. Where that does not come, or ceases, the line
// is low within 5.2 s by the board's own clock, and the answers, the journal and the reset say what happened. Noise, a
// dead sensor and a contact that was closed before never count as an effect.
func (m *machine) effect(t *testing.T) {
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	m.SetInput(t, "ads1115", "in0", 0)
	m.Pull(t, gate, true) // open
	m.StartSite(t, strings.ReplaceAll(`site: { name: board }
devices:
  flow: { driver: ads1115, bus: BUS, address: 0x49, channels: ["0"], every: 1s }
  vane: { driver: contact, pin: GPIO24, every: 1s }
  pump: { driver: relay, pin: GPIO17, safe: off, min_off: 0s, expect: { point: flow/voltage0, above: 1 V, within: 5s } }
  well: { driver: relay, pin: GPIO22, safe: off, min_off: 0s, expect: { point: vane/closed, is: on, within: 5s, else: latch } }
`, "BUS", m.Bus(t)))
	defer m.EndSite(t)
	m.expect(t, near("flow/voltage0", 0, 0.01), on("vane/closed", false))
	says := func(output, want string) {
		t.Helper()
		harness.WaitFor(t, 20*time.Second, output+" says "+want, func() bool { return m.effectOf(t, output) == want })
	}
	// dry moves an output whose effect does not come, and returns how long its line was high.
	dry := func(output string, line int, meanwhile func()) time.Duration {
		t.Helper()
		m.UseTool(t, "switch_output", `{"output":"`+output+`","on":true,"for_seconds":60}`)
		if meanwhile != nil {
			meanwhile()
		}
		m.WaitForLine(t, line, false)
		says(output, "failed")
		return m.highFor(t, line)
	}
	const limit = 5200 * time.Millisecond
	var took []time.Duration
	for what, meanwhile := range map[string]func(){
		"nothing flows": nil,
		"noise": func() {
			for range 8 {
				m.SetInput(t, "ads1115", "in0", 2)
				harness.WaitFor(t, 20*time.Second, "it is read, or has ended",
					func() bool { return m.seen(t, 2) || !m.Level(t, 17) })
				m.SetInput(t, "ads1115", "in0", 0)
				harness.WaitFor(t, 20*time.Second, "it is read, or has ended",
					func() bool { return m.seen(t, 0) || !m.Level(t, 17) })
			}
		},
		"a sensor that dies": func() {
			m.SetInput(t, "ads1115", "in0", 2)
			m.SetState(t, "ads1115", "unresponsive")
		},
	} {
		t.Log(what)
		took = append(took, harness.CheckOrdinaryDeadline(t, limit, func() time.Duration {
			defer func() {
				m.SetState(t, "ads1115", "ok")
				m.SetInput(t, "ads1115", "in0", 0)
				m.expect(t, near("flow/voltage0", 0, 0.01))
			}()
			return dry("pump/relay", 17, meanwhile)
		}))
	}
	t.Log("it flows, and ceases")
	m.SetInput(t, "ads1115", "in0", 2)
	m.expect(t, near("flow/voltage0", 2, 0.01))
	m.UseTool(t, "switch_output", `{"output":"pump/relay","on":true,"for_seconds":120}`)
	says("pump/relay", "confirmed")
	m.SetInput(t, "ads1115", "in0", 0)
	m.WaitForLine(t, 17, false)
	says("pump/relay", "failed")

	t.Log("one that latches")
	took = append(took, harness.CheckOrdinaryDeadline(t, limit, func() time.Duration {
		m.Run(t, "/agentsite", "reset", "--data", "/data")
		return dry("well/relay", 22, nil)
	}))
	if answer, err := m.Client(t, true).Ask(t.Context(), "switch_output", []byte(`{"output":"well/relay","on":true}`)); err == nil || !strings.Contains(err.Error(), "agentsite reset") {
		t.Errorf("a latched output is moved: %s %v", answer.JSON, err)
	}
	m.EndSite(t)
	m.StartSite(t, m.ReadFile(t, "/agentsite.yaml"))
	harness.WaitFor(t, 20*time.Second, "it is latched after a restart", func() bool {
		_, err := m.Client(t, true).Ask(t.Context(), "switch_output", []byte(`{"output":"well/relay","on":true}`))
		return err != nil && strings.Contains(err.Error(), "agentsite reset")
	})
	if exit, _, said := m.Run(t, "/agentsite", "reset", "--data", "/data"); exit != 0 {
		t.Errorf("reset ends with %d: %s", exit, said)
	}
	m.Pull(t, gate, false) // it flows, too late
	m.expect(t, on("vane/closed", true))
	m.UseTool(t, "switch_output", `{"output":"well/relay","on":true,"for_seconds":60}`)
	says("well/relay", "confirmed")
	m.UseTool(t, "release_output", `{"output":"well/relay"}`)
	harness.LogDurations(t, "from the move of the line until it is safe", took)

	_, journal, _ := m.Run(t, "/agentsite", "journal", "--data", "/data")
	for _, word := range []string{"pump/relay: confirmed", "pump/relay went to safe", "well/relay went to safe", "reset"} {
		if !strings.Contains(journal, word) {
			t.Errorf("the journal does not say %q:\n%s", word, journal)
		}
	}
}

// effectOf returns the effect of an output as the site reports it.
func (m *machine) effectOf(t testing.TB, output string) string {
	t.Helper()
	var why agents.Why
	if exit, out, said := m.Run(t, "/agentsite", "why", output, "--json", "--data", "/data"); exit != 0 {
		t.Fatal(exit, out, said)
	} else if err := json.Unmarshal([]byte(out), &why); err != nil {
		t.Fatal(err, out)
	}
	return why.Output.Effect
}

// seen reports whether the flow was read as a voltage.
func (m *machine) seen(t testing.TB, volts float64) bool {
	t.Helper()
	return near("flow/voltage0", volts, 0.01).ok(m.readings(t)["flow/voltage0"])
}

// highFor returns how long a simulated line was high the last time, as the board's kernel logged it.
func (m *machine) highFor(t testing.TB, line int) time.Duration {
	t.Helper()
	log := harness.AskGuest[string](t, m.Machine, "GET", "/kernel", nil)
	all := regexp.MustCompile(`\[ *([0-9.]+)\] gpio_sim: line `+strconv.Itoa(line)+` = ([01]) by`).FindAllStringSubmatch(log, -1)
	var high, took float64
	for _, w := range all {
		at, _ := strconv.ParseFloat(w[1], 64)
		if w[2] == "1" {
			high = at
		} else if high > 0 {
			high, took = 0, at-high
		}
	}
	if high > 0 || took == 0 {
		t.Fatalf("line %d is high, or was not: %q", line, all)
	}
	return time.Duration(took * float64(time.Second))
}
