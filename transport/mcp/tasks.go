package mcp

import (
	"context"
	"sync"
	"time"

	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// The extension io.modelcontextprotocol/tasks, revision 2026-07-28: a call that asks an agent is
// answered with the task if the client declares the extension in the request.

const (
	cancelMethod = "tasks/cancel"
	// taskTTL is how long after its beginning a task can be asked for at least, unless very many
	// have ended since.
	taskTTL = 7 * 24 * time.Hour
	// pollInterval is how often a client may ask that does not listen.
	pollInterval = time.Second
	// maxTasksWatched bounds the tasks of one subscription.
	maxTasksWatched = 16
)

// taskParams are those of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	Params
	ID        string             `json:"taskId"`
	Responses map[string]rpc.Raw `json:"inputResponses,omitzero"` // of tasks/update
}

func (p *taskParams) mirrored() string { return p.ID }

// taskFields are a task of the specification, with the members of its state.
type taskFields struct {
	ID       string                  `json:"taskId"`
	Status   string                  `json:"status"`
	Message  string                  `json:"statusMessage,omitzero"`
	Created  string                  `json:"createdAt"`
	Changed  string                  `json:"lastUpdatedAt"`
	TTL      int64                   `json:"ttlMs"`
	Poll     int64                   `json:"pollIntervalMs"`
	Requests map[string]inputRequest `json:"inputRequests,omitzero"`
	Result   *CallResult             `json:"result,omitzero"`
	Error    *rpc.Error              `json:"error,omitzero"`
}

// taskResult answers a tools/call with a task, and tasks/get.
type taskResult struct {
	Result
	taskFields
}

// taskNotification are the parameters of notifications/tasks.
type taskNotification struct {
	Meta subscriptionMeta `json:"_meta"`
	taskFields
}

// tasksFor refuses a client that has not declared the extension, and a site without tasks.
func (s *Server) tasksFor(r request) error {
	if s.catalog.Tasks == nil {
		return rpc.Errorf(rpc.CodeMethodNotFound, "nobody takes tasks here")
	}
	if r.meta.Capabilities.Extensions.Tasks == nil {
		return missing(tools.Capabilities{Tasks: true})
	}
	return nil
}

// seed returns the members that a task has in every state.
func seed(t task.Task) taskFields {
	f := taskFields{
		ID: t.ID, Status: "working", Message: t.Says, Created: t.Created, Changed: t.Changed,
		TTL: taskTTL.Milliseconds(), Poll: pollInterval.Milliseconds(),
	}
	switch t.State {
	case task.InputRequired:
		f.Status = "input_required"
	case task.AuthRequired: // no answer of the client's would do
		if t.Question != nil {
			f.Message = t.Question.Text
		}
	case task.Completed, task.Rejected:
		f.Status = "completed"
	case task.Failed:
		f.Status = "completed" // the call has a result, which says that it failed
		if device.FaultKind(t.Fault) == device.Internal {
			f.Status = "failed"
		}
	case task.Canceled:
		f.Status = "cancelled"
	}
	return f
}

// detailed returns a task with all that its state has.
func (s *Server) detailed(r request, t task.Task) (taskFields, error) {
	f := seed(t)
	switch f.Status {
	case "input_required":
		if q := t.Question; q != nil {
			form := tools.Elicit(*q)
			f.Requests = map[string]inputRequest{form.Key: {form.Method, form.Params}}
		}
	case "completed":
		res, err := tools.OutcomeOf(t)
		if err != nil {
			f.Result = s.failed(device.AsFault(err))
			return f, nil
		}
		f.Result, err = s.callResult(res, r.meta.Text != textNone)
		return f, err
	case "failed":
		f.Error = rpc.Errorf(rpc.CodeInternal, "%s", t.Says)
	}
	return f, nil
}

// full returns the task itself for a client that asks for its steps.
func (r request) full(t task.Task) *task.Task {
	if !r.meta.Steps {
		return nil
	}
	return &t
}

// taskCreated answers a call with the task that it made, which is durable.
func (s *Server) taskCreated(r request, t task.Task) (any, error) {
	if err := s.tasksFor(r); err != nil {
		return nil, err
	}
	out := taskResult{s.completed(), seed(t)}
	out.Type, out.Meta.Task = "task", r.full(t)
	return out, nil
}

// task returns a task of the caller.
func (s *Server) task(ctx context.Context, r request, id string) (task.Task, error) {
	if err := s.tasksFor(r); err != nil {
		return task.Task{}, err
	}
	return s.catalog.Tasks.Task(ctx, r.who, id)
}

func (s *Server) tasksGet(ctx context.Context, r request, p *taskParams) (any, error) {
	t, err := s.task(ctx, r, p.ID)
	if err != nil {
		return nil, err
	}
	f, err := s.detailed(r, t)
	out := taskResult{s.completed(), f}
	out.Meta.Task = r.full(t)
	return out, err
}

// tasksUpdate takes the answer to a task's question. Answers to another question are
// ignored.
func (s *Server) tasksUpdate(ctx context.Context, r request, p *taskParams) (any, error) {
	t, err := s.task(ctx, r, p.ID)
	if err != nil {
		return nil, err
	}
	if t.State == task.InputRequired && t.Question != nil {
		if response, answered := p.Responses[t.Question.ID]; answered {
			_, err = tools.Respond(ctx, s.catalog.Tasks, r.who, t.ID, t.Question.ID, response)
		}
	}
	return s.completed(), err
}

func (s *Server) tasksCancel(ctx context.Context, r request, p *taskParams) (any, error) {
	if err := s.tasksFor(r); err != nil {
		return nil, err
	}
	_, err := s.catalog.Tasks.Cancel(ctx, r.who, p.ID)
	return s.completed(), err
}

// knownTasks keeps the tasks that the caller has, each once.
func (s *Server) knownTasks(ctx context.Context, r request, ids []string) (known []string) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if len(known) == maxTasksWatched {
			break
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if _, err := s.catalog.Tasks.Task(ctx, r.who, id); err == nil {
			known = append(known, id)
		}
	}
	return known
}

// taskWatches are the goroutines of a subscription that watch a task each.
type taskWatches struct{ sync.WaitGroup }

// watchTasks sends the tasks as they are and as they change, each until it has ended.
func (s *Server) watchTasks(ctx context.Context, r request, ids []string, all *taskWatches) {
	for _, id := range ids {
		all.Go(func() {
			s.catalog.Tasks.Watch(ctx, r.who, id, func(t task.Task) error {
				f, err := s.detailed(r, t)
				if err != nil {
					return err
				}
				return r.Notify("notifications/tasks", taskNotification{subscriptionMeta{Subscription: r.ID, Task: r.full(t)}, f})
			})
		})
	}
}
