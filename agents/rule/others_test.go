package rule_test

import (
	"context"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
)

// TestOthers: a rule yields to an owner until its condition was false. To any other caller it
// yields for ten minutes after a release, and while that caller holds the output.
func TestOthers(t *testing.T) {
	points := []agents.Point{{Point: temperature, Kind: device.KindMeasurement, Unit: "Cel"}, {Point: heater, Kind: device.KindSwitch, Safe: off}}
	r := rule.Kind(rule.World{}).New().(*rule.Rule)
	r.When, r.Hold = temperature+" < 5 Cel", map[string]device.Value{heater: on}
	for _, tt := range []struct {
		name  string
		lease rule.Lease
		then  *rule.Lease // five minutes later
		after time.Duration
	}{
		{"another's release", rule.Lease{Others: true, Known: true}, nil, 10 * time.Minute},
		{"an owner's release", rule.Lease{Known: true}, nil, 0},
		{"another's lease", rule.Lease{Holder: "somebody else", Others: true, Known: true}, &rule.Lease{Known: true, Why: "its lease was over"}, 10 * time.Minute},
		{"an owner's lease after another's", rule.Lease{Holder: "somebody else", Others: true, Known: true}, &rule.Lease{Holder: "somebody else", Known: true}, 0},
	} {
		m, err := r.NewMachine(self.ID, points)
		if err != nil {
			t.Fatal(err)
		}
		now := rule.Moment{Now: time.Second}
		m.Tell(now.Now, 0, &rule.Reading{Value: device.Number(4), Known: true})
		held := func() bool {
			acts, _ := m.Step(now)
			for _, a := range acts {
				m.Done(now, a, a.For, 0, nil)
			}
			return len(acts) > 0
		}
		if !held() {
			t.Fatal("it does not begin")
		}
		m.Output(now, now.Now, 0, rule.Lease{Holder: self.ID, Known: true})
		now.Now += time.Second
		began := now.Now
		m.Output(now, now.Now, 0, tt.lease)
		var after time.Duration
		for ; after == 0 && now.Now < time.Hour; now.Now += time.Minute {
			if tt.then != nil && now.Now-began == 5*time.Minute {
				m.Output(now, now.Now, 0, *tt.then)
			}
			if held() {
				after = now.Now - began
			}
		}
		if after != tt.after {
			t.Errorf("%s: it goes on after %v; want %v", tt.name, after, tt.after)
		}
	}
}

// TestReleasedByAgent: a rule yields to a release by an agent of the site as to one by an owner.
func TestReleasedByAgent(t *testing.T) {
	inHouse(t, func(h *house) {
		dark := agents.Principal{ID: "routine:dark"}
		h.node.ReplaceAgents(map[string]node.Hosted{self.ID: {Rank: 1}, dark.ID: {Rank: 200}})
		report, end := h.run(frost, self)
		h.cold(4, time.Minute)
		h.wantState(report, agent.Holding)
		if _, err := h.node.Move(context.Background(), dark, agents.MoveRequest{Output: heater}); err != nil {
			t.Fatal(err)
		}
		h.took()
		h.cold(4, 30*time.Minute)
		h.wantWrites("")
		h.wantState(report, agent.Yielding)
		end()
	})
}
