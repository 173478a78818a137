package adapter

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
)

// Wait returns a task when it has ended or waits for its asker, or as it is after d or when the
// site begins to end.
func (s *Site) Wait(ctx context.Context, who agents.Principal, t task.Task, d time.Duration) (task.Task, error) {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer context.AfterFunc(s.Ending, cancel)()
	err := task.WatchUntil(waiting, s.Tasks, who, t.ID, func(now task.Task) (bool, error) {
		t = now
		return t.Settled(), nil
	})
	if waiting.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return t, err
}
