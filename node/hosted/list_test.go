package hosted

import (
	"context"
	"testing"
	"testing/synctest"

	"agentsite/agents/agent"
	"agentsite/node/config"
)

// teller is an agent that says what it does, if it is still asked.
type teller struct {
	probe
	Hangs bool `json:"hangs,omitempty"`
}

func (a *teller) Report(ctx context.Context) agent.Report {
	if a.Hangs {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return agent.Report{State: agent.Waiting}
	}
	return agent.Report{State: agent.Idle}
}

// TestHangingReport: an agent that hangs is no reason for a wrong report of another.
func TestHangingReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.Kinds = func(*config.Site) []agent.Kind {
			return []agent.Kind{{Name: "teller", New: func() agent.Agent { return &teller{} }}}
		}
		if err := r.Apply(parse(t, "agents: { a: { kind: teller, hangs: true }, b: { kind: teller } }")); err != nil {
			t.Fatal(err)
		}
		if all := r.List(t.Context()); all[0].State != agent.Waiting || all[1].State != agent.Idle {
			t.Errorf("%+v", all)
		}
	})
}
