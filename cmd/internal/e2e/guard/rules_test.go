//go:build e2e && linux

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
)

// TestRules: the design's own rule follows its sensor in simulated hours, in a frost that never
// ends by itself; the emergency stop wins over it. One that holds an output by renewals yields to
// an owner, lets go when the site is killed, and moves once after that.
func TestRules(t *testing.T) {
	r := harness.StartRelay(t,
		"house: { driver: sim, every: 500ms, speed: 600, points: { temperature: { offset: -20 }, heater: { min_off: 0, max_on: unlimited } } }\nagents:",
		"keep: { kind: rule, may: set box max 5s, when: house/temperature > -40 Cel, hold: { box/relay: on } }",
		"frost: { kind: rule, may: set house/heater max 5m, when: house/temperature < 5 Cel, until: house/temperature > 7 Cel, hold: { house/heater: on } }")
	held := func() {
		t.Helper()
		harness.WaitFor(t, 20*time.Second, "the rule holds the relay", func() bool { return r.State() == "on" })
	}
	begun := func() (count int) { // since the start; renewals are none
		for _, c := range why(t, r.Site, "box/relay").Changes {
			if c.Holder == "rule:keep" {
				count++
			}
		}
		return count
	}
	held()
	harness.WaitFor(t, 30*time.Second, "the rule has renewed its lease twice", func() bool { return why(t, r.Site, "box/relay").Held > 11 })
	if n := begun(); n != 1 {
		t.Errorf("%d moves", n)
	}
	harness.WaitFor(t, 90*time.Second, "the heater was switched on and off twice", func() bool {
		out, _ := r.CLI(t, "history", "house/heater", "--hours", "0.05", "--json")
		_, first, _ := strings.Cut(out, `"held_by":"rule:frost"`)
		_, second, _ := strings.Cut(first, `"held_by":"rule:frost"`)
		return strings.Contains(second, `"value":false`)
	})
	checkStopWins(t, r)
	held()
	harness.WaitFor(t, 90*time.Second, "the rule heats again after the reset", func() bool { return why(t, r.Site, "house/heater").Output.Holder == "rule:frost" })

	if out, err := r.CLI(t, "set", "box/relay", "off"); err != nil {
		t.Fatal(out, err)
	}
	harness.WaitFor(t, 20*time.Second, "the rule yields", func() bool {
		out, _ := r.CLI(t, "rules")
		return strings.Contains(out, "yields")
	})
	if r.State() != "off" {
		t.Error("an owner's word did not win")
	}

	config, err := os.ReadFile(filepath.Join(r.Folder, "agentsite.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.Kill(t)
	r.WaitForOff()
	if r.State() != "off" {
		t.Fatal("the relay is on after a kill")
	}
	r.Site = harness.StartIn(t, r.Folder, string(config), nil, harness.Need(t, "the program", harness.Program))
	held()
	harness.WaitFor(t, 30*time.Second, "the rule has renewed its lease", func() bool { return why(t, r.Site, "box/relay").Held > 6 })
	if n := begun(); n != 1 {
		t.Errorf("%d moves after the kill", n)
	}
}

// why asks why a point is so.
func why(t *testing.T, r *harness.Site, point string) (w agents.Why) {
	t.Helper()
	out, err := r.CLI(t, "why", point, "--json")
	if err != nil {
		t.Fatal(err)
	}
	harness.DecodeJSON(t, out, &w)
	return w
}

// checkStopWins: while the emergency stop is latched both rules wait, and nothing is on.
func checkStopWins(t *testing.T, r *harness.RelaySite) {
	t.Helper()
	if out, err := r.CLI(t, "stop"); err != nil {
		t.Fatal(out, err)
	}
	harness.WaitFor(t, 30*time.Second, "both rules wait", func() bool {
		out, _ := r.CLI(t, "rules", "--json")
		return strings.Count(out, `"state":"waits"`) == 2
	})
	if heater := why(t, r.Site, "house/heater"); r.State() != "off" || heater.Value != device.Bool(false) || heater.Output.Holder != "" {
		t.Errorf("after the stop the relay is %s, and the heater %v of %q", r.State(), heater.Value, heater.Output.Holder)
	}
	checkRefused(t, r, "agentsite reset")
	resetStop(t, r)
}
