package tasks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// lender makes a step for each move, with a text that says nothing about it.
type lender struct {
	agent.Worker
	moves []lent
}

type lent struct {
	asked time.Duration
	given float64 // seconds
	told  bool
}

func (lender) Skills() []task.Skill { return []task.Skill{{ID: "run"}} }

func (l lender) Work(ctx context.Context, _ agents.Principal, _ agents.Site, w task.Work) (jsontext.Value, error) {
	for _, m := range l.moves {
		s := task.Step{Does: "something", Op: agents.OpMove, Output: "m/p", Value: device.Bool(true), For: m.asked}
		_, err := w.(*work).step(ctx, s, true, func(string, string) (any, error) {
			return agents.Output{Output: "m/p", Left: m.given}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// TestLeaseGiven: a step tells the length of its lease where that is not the one that was asked for,
// whatever the words of the step are.
func TestLeaseGiven(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		moves := []lent{{5 * time.Minute, 300, false}, {5 * time.Minute, 299.8, false}, {5 * time.Minute, 60, true}, {0, 60, true}, {time.Minute, 0, false}}
		r.crew.all[0].Worker = lender{moves: moves}
		asked, err := r.Ask(t.Context(), ann, task.Request{Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		steps := r.task(t, ann, asked.ID).Steps
		if len(steps) != len(moves) {
			t.Fatalf("%+v", steps)
		}
		for i, m := range moves {
			if told := steps[i].Says != ""; steps[i].Outcome != outcomeDone || told != m.told {
				t.Errorf("%+v: %+v", m, steps[i])
			}
		}
	})
}
