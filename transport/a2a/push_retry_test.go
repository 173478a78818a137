package a2a

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/transport/webhook"
)

// watched is a task that goes through some states, one a second.
type watched []task.State

func (w watched) Watch(ctx context.Context, _ agents.Principal, id string, emit func(task.Task) error) error {
	began := time.Now()
	for i := 0; i < len(w); i++ {
		i = max(i, min(int(time.Since(began)/time.Second), len(w)-1)) // what changed while emit ran is told once
		if err := emit(task.Task{ID: id, State: w[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (watched) Task(context.Context, agents.Principal, string) (task.Task, error) {
	return task.Task{}, errors.ErrUnsupported
}
func (watched) List(context.Context, agents.Principal) ([]task.Task, error) {
	return nil, errors.ErrUnsupported
}
func (watched) Cancel(context.Context, agents.Principal, string) (task.Task, error) {
	return task.Task{}, errors.ErrUnsupported
}

// transport answers each request with what it returns.
type transport func(body string) (int, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, err := t(string(body))
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, err
}

// TestPushRetries: a notification is tried again with a back-off that doubles, and in order; after
// the last try its configuration ends.
func TestPushRetries(t *testing.T) {
	for name, c := range map[string]struct {
		fails int
		want  string
		takes time.Duration
	}{
		"at once":         {0, "WORKING INPUT_REQUIRED COMPLETED", 2 * time.Second},
		"the fourth time": {3, "WORKING COMPLETED", 7*time.Second + time.Second}, // what lay between is over
		"never":           {1000, "", 511 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				tries := 0
				h := &pushes{to: &webhook.Sender{Client: &http.Client{Transport: transport(func(body string) (int, error) {
					if tries++; tries <= c.fails {
						if tries%2 == 0 {
							return 0, errors.New("the connection was refused")
						}
						return http.StatusServiceUnavailable, nil
					}
					_, state, _ := strings.Cut(body, `"state":"TASK_STATE_`)
					state, _, _ = strings.Cut(state, `"`)
					told = append(told, state)
					return http.StatusAccepted, nil
				})}}}
				began := time.Now()
				p := &push{Config: pushConfig{URL: "https://hooks.example.com/secret"}}
				err := h.notify(t.Context(), &call{tasks: watched{task.Working, task.InputRequired, task.Completed}}, p, "T")
				if got := strings.Join(told, " "); got != c.want || (err == nil) != (c.want != "") || time.Since(began) != c.takes {
					t.Errorf("%s, %v, after %v", got, err, time.Since(began))
				}
				if err != nil && (tries != len(pushPauses)+1 || strings.Contains(err.Error(), "secret")) {
					t.Errorf("%d tries: %v", tries, err)
				}
			})
		})
	}
}
