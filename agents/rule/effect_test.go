package rule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/device"
)

// TestNoEffect: a rule leaves an output alone for longer each time that its effect failed, says so, and goes on as
// usual once that was confirmed, or an owner has reset it.
func TestNoEffect(t *testing.T) {
	points := []agents.Point{{Point: temperature, Kind: device.KindMeasurement, Unit: "Cel"}, {Point: heater, Kind: device.KindSwitch, Safe: off}}
	r := rule.Kind(rule.World{}).New().(*rule.Rule)
	r.When, r.Hold = temperature+" < 5 Cel", map[string]device.Value{heater: on}
	m, err := r.NewMachine(self.ID, points)
	if err != nil {
		t.Fatal(err)
	}
	now := rule.Moment{Now: time.Second}
	m.Tell(now.Now, 0, &rule.Reading{Value: device.Number(4), Known: true})
	holds := func(effect string) {
		m.Output(now, now.Now, 0, rule.Lease{Holder: self.ID, Known: true, Effect: effect})
	}
	// fails has the effect fail, and returns how long it takes until the output is moved again.
	fails := func(rest time.Duration, reset bool) time.Duration {
		t.Helper()
		now.Now += 5 * time.Second
		failed := rule.Lease{Known: true, Effect: agents.EffectFailed, Why: "the effect that it has to have did not come"}
		began := now.Now
		resting := failed
		resting.Rest = rest
		m.Output(now, now.Now, 0, resting)
		for now.Now-began < 3*time.Hour {
			if acts, _ := m.Step(now); len(acts) > 0 {
				m.Done(now, acts[0], acts[0].For, 0, nil)
				holds(agents.EffectAwaited)
				return now.Now - began
			}
			if report := m.Report(now); report.State != agent.Waiting || !strings.Contains(report.Says, heater) {
				t.Fatalf("%+v", report)
			}
			now.Now += 10 * time.Second
			switch {
			case reset && now.Now-began == 20*time.Second:
				m.Output(now, now.Now, 0, rule.Lease{Known: true, Why: failed.Why})
			case now.Now-began == rest:
				m.Output(now, now.Now, 0, failed)
			}
		}
		return 0
	}
	acts, _ := m.Step(now)
	m.Done(now, acts[0], acts[0].For, 0, nil)
	holds(agents.EffectAwaited)
	var after []time.Duration
	for range 8 {
		after = append(after, fails(10*time.Second, false))
	}
	holds(agents.EffectConfirmed)
	after = append(after, fails(10*time.Second, false), fails(0, true))
	const m1 = time.Minute
	if want := []time.Duration{m1, 2 * m1, 4 * m1, 8 * m1, 16 * m1, 32 * m1, 60 * m1, 60 * m1, m1, 20 * time.Second}; !slices.Equal(after, want) {
		t.Errorf("%v, want %v", after, want)
	}
}
