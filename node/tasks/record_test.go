package tasks

import (
	"reflect"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// TestStepData: what a step asks for is read back from a task's file. A move without its operation is
// refused.
func TestStepData(t *testing.T) {
	at := stamp(0)
	var moved []string
	for _, s := range []task.Step{
		{Does: "x", Op: agents.OpMove, Output: "a/b", Value: device.Bool(false), For: 1500 * time.Millisecond},
		{Does: "x", Op: agents.OpMove, Output: "shed/a/b", Value: device.Number(0.1)},
		{Does: "x", Op: agents.OpMove, Output: "a/c"},
		{Does: "x", Op: agents.OpStop}, {Does: "x", Op: agents.OpShow}, {Does: "x", Op: agents.OpCapture}, {Does: "x", Op: agents.OpAsk}, {Does: "set a/b to on"},
	} {
		r, e := record{state: task.Working}, intentOf(1, s)
		frame, err := appendFrame(nil, &e)
		if err == nil {
			e, _, err = parseFrame(frame)
		}
		if err == nil {
			err = r.apply(&e)
		}
		if s.Time = at; err != nil || !reflect.DeepEqual(r.steps, []task.Step{s}) {
			t.Errorf("%+v, want %+v: %v", r.steps, s, err)
		}
		moved = append(moved, r.moved...)
	}
	if !reflect.DeepEqual(moved, []string{"a/b", "shed/a/b"}) {
		t.Error("moved: ", moved)
	}
	r := record{state: task.Working}
	if err := r.apply(&entry{Kind: kindIntent, Step: 1, Says: "x", Output: "a/b"}); err == nil {
		t.Errorf("a move without its operation: %+v", r)
	}
}
