package task

import (
	"context"
	"errors"

	"agentsite/agents"
	"agentsite/device"
)

// Watcher watches tasks.
type Watcher interface {
	// Watch calls emit from one goroutine with the current task and after each change, until the
	// task has ended. Changes while emit runs are merged into the next call.
	Watch(ctx context.Context, p agents.Principal, id string, emit func(Task) error) error
}

// Settled reports whether a task has ended or waits for its asker.
func (t Task) Settled() bool { return t.State.Ended() || t.State == InputRequired }

var errSeen = errors.New("the watcher has seen enough")

// WatchUntil watches a task, until see reports that it has seen enough.
func WatchUntil(ctx context.Context, w Watcher, p agents.Principal, id string, see func(Task) (enough bool, err error)) error {
	err := w.Watch(ctx, p, id, func(t Task) error {
		enough, err := see(t)
		if err == nil && enough {
			err = errSeen
		}
		return err
	})
	if errors.Is(err, errSeen) {
		return nil
	}
	return err
}

// AnswerQuestion answers a question of a task; where question is "", the present one.
func AnswerQuestion(ctx context.Context, h Host, p agents.Principal, id, question, answer string) (Task, error) {
	if question == "" {
		t, err := h.Task(ctx, p, id)
		if err != nil {
			return t, err
		}
		if t.Question == nil {
			return t, device.Faultf(device.Invalid, "the task asks nothing now: it is %s", t.State)
		}
		question = t.Question.ID
	}
	return h.Answer(ctx, p, id, question, answer)
}
