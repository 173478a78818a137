package openapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/transport/adapter/adaptertest"
)

// waitedFor is a host of tasks that says when a task is watched.
type waitedFor struct {
	task.Host
	begun func()
}

func (w waitedFor) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	w.begun()
	return w.Host.Watch(ctx, p, id, emit)
}

// TestWaitEnds: when the site ends, a caller that waits for a task gets its current state.
func TestWaitEnds(t *testing.T) {
	s := adaptertest.New(t, nil)
	ending, end := context.WithCancel(s.Ending)
	s.Site.Ending, s.Tasks = ending, waitedFor{s.Tasks, end}
	s.Serve(t, Routes(&s.Site))
	_, text := s.Ask(t, "POST", "/api/agents/helper/tasks", adaptertest.SiteToken, `{"skill":"wait"}`)
	_, id, ok := strings.Cut(text, `"id":"`)
	if !ok {
		t.Fatal(text)
	}
	id, _, _ = strings.Cut(id, `"`)
	began := time.Now()
	res, text := s.Ask(t, "GET", "/api/tasks/"+id+"?wait_seconds=25", adaptertest.SiteToken, "")
	if res.StatusCode != http.StatusOK || !strings.Contains(text, id) || time.Since(began) > 20*time.Second {
		t.Errorf("%s after %v: %s", res.Status, time.Since(began), text)
	}
}
