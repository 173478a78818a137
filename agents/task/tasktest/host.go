package tasktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Host is a task.Host in memory: its tasks begin at once, and end with the program. It is for
// tests. Close ends it.
type Host struct {
	// Agent is the only agent.
	Agent task.Agent
	// Work works on its tasks.
	Work func(context.Context, task.Work) (jsontext.Value, error)
	// May reports whether p may ask it, and Owner whether p sees the tasks of all.
	May, Owner func(p agents.Principal) bool

	running sync.WaitGroup
	mu      sync.Mutex
	tasks   []*entry // the newest last
	closed  bool
}

// entry is one task. The host's lock guards it.
type entry struct {
	task.Task
	asker   string
	request task.Request
	answers map[string]string // by question
	cancel  context.CancelFunc
	changed chan struct{} // closed at the next change
}

var _ task.Host = (*Host)(nil)

// Close cancels what runs, and returns when it has ended.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	for _, e := range h.tasks {
		e.cancel()
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *Host) Agents(_ context.Context, p agents.Principal) ([]task.Agent, error) {
	if !h.May(p) {
		return nil, nil
	}
	return []task.Agent{h.Agent}, nil
}

func (h *Host) Ask(_ context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	if r.Skill == "" && len(h.Agent.Skills) == 1 {
		r.Skill = h.Agent.Skills[0].ID
	}
	switch {
	case !h.May(p):
		return task.Task{}, device.Faultf(device.Denied, "you may not ask %.40q", r.Agent)
	case r.Agent != h.Agent.Name:
		return task.Task{}, device.Faultf(device.Invalid, "there is no agent %.40q; ask %s", r.Agent, h.Agent.Name)
	case !slices.ContainsFunc(h.Agent.Skills, func(s task.Skill) bool { return s.ID == r.Skill }):
		return task.Task{}, device.Faultf(device.Invalid, "%s has no skill %.40q", r.Agent, r.Skill)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.tasks {
		if r.Key != nil && e.asker == p.ID && e.request.Key != nil && *e.request.Key == *r.Key {
			if e.request.Agent != r.Agent || e.request.Skill != r.Skill || e.request.Text != r.Text || !bytes.Equal(e.request.Arguments, r.Arguments) {
				return task.Task{}, device.Faultf(device.Invalid, "the idempotency key was used for another task")
			}
			return e.Task, nil
		}
	}
	if h.closed {
		return task.Task{}, device.Faultf(device.Unavailable, "the site is being stopped")
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &entry{
		Task:  task.Task{ID: rand.Text(), Agent: r.Agent, Skill: r.Skill, State: task.Submitted, Asker: p.ID, Created: now(), Changed: now(), Context: r.Context, Text: r.Text, Arguments: r.Arguments},
		asker: p.ID, request: r, answers: make(map[string]string), cancel: cancel, changed: make(chan struct{}),
	}
	if r.Key != nil {
		e.Key = *r.Key
	}
	h.tasks = append(h.tasks, e)
	asked := e.Task
	h.running.Go(func() { h.work(ctx, e) })
	return asked, nil
}

// work runs one task.
func (h *Host) work(ctx context.Context, e *entry) {
	defer e.cancel()
	h.change(e, func() { e.enter(task.Working) })
	res, err := h.Work(ctx, &work{h, e})
	h.change(e, func() {
		if e.State.Ended() {
			return
		}
		if err == nil {
			e.enter(task.Completed)
			e.Result = res
			return
		}
		f := device.AsFault(err)
		if f.Kind == device.Invalid && len(e.Steps) == 0 {
			e.enter(task.Rejected)
		} else {
			e.enter(task.Failed)
		}
		e.Says, e.Fault = f.Msg, string(f.Kind)
	})
}

// enter changes the state where A2A's table allows it.
func (e *entry) enter(s task.State) {
	if e.State.Before(s) {
		e.State, e.Question = s, nil
	}
}

// change changes a task, and tells its watchers.
func (h *Host) change(e *entry, how func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changeLocked(e, how)
}

func (h *Host) changeLocked(e *entry, how func()) {
	how()
	e.Changed = now()
	close(e.changed)
	e.changed = make(chan struct{})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// find returns a task of p's. The lock is held.
func (h *Host) find(p agents.Principal, id string) (*entry, error) {
	for _, e := range h.tasks {
		if e.ID == id && (e.asker == p.ID || h.Owner(p)) {
			return e, nil
		}
	}
	return nil, device.Faultf(device.Invalid, "you have no task %.40q", id)
}

func (h *Host) Task(_ context.Context, p agents.Principal, id string) (task.Task, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.find(p, id)
	if err != nil {
		return task.Task{}, err
	}
	t := e.Task
	t.Steps = slices.Clone(t.Steps)
	return t, nil
}

func (h *Host) List(_ context.Context, p agents.Principal) (all []task.Task, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range slices.Backward(h.tasks) {
		if e.asker == p.ID || h.Owner(p) {
			t := e.Task
			t.Steps = nil
			all = append(all, t)
		}
	}
	return all, nil
}

func (h *Host) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	for {
		h.mu.Lock()
		e, err := h.find(p, id)
		if err != nil {
			h.mu.Unlock()
			return err
		}
		t, changed := e.Task, e.changed
		t.Steps = slices.Clone(t.Steps)
		h.mu.Unlock()
		if err := emit(t); err != nil || t.State.Ended() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (h *Host) Answer(_ context.Context, p agents.Principal, id, question, answer string) (task.Task, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.find(p, id)
	switch {
	case err != nil:
		return task.Task{}, err
	case e.State != task.InputRequired || e.Question.ID != question:
		return task.Task{}, device.Faultf(device.Invalid, "the task does not ask that now: it is %s", e.State)
	case len(e.Question.Options) > 0 && !slices.Contains(e.Question.Options, answer):
		return task.Task{}, device.Faultf(device.Invalid, "%.40q is no answer to it; use one of %q", answer, e.Question.Options)
	}
	h.changeLocked(e, func() {
		e.answers[question] = answer
		e.Exchanges = slices.Clone(e.Exchanges)
		e.Exchanges[len(e.Exchanges)-1].Answer = answer
		e.enter(task.Working)
	})
	return e.Task, nil
}

func (h *Host) Cancel(_ context.Context, p agents.Principal, id string) (task.Task, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.find(p, id)
	if err != nil {
		return task.Task{}, err
	}
	if !e.State.Ended() {
		h.changeLocked(e, func() { e.enter(task.Canceled) })
		e.cancel()
	}
	return e.Task, nil
}

// work is a task as its agent has it.
type work struct {
	host *Host
	*entry
}

func (w *work) Task() task.Task {
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	return w.entry.Task
}

func (w *work) Step(ctx context.Context, does string, do func(context.Context, string) (any, error)) (jsontext.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var i int
	w.host.change(w.entry, func() {
		i = len(w.Steps)
		w.Steps = append(slices.Clone(w.Steps), task.Step{Does: does, Time: now(), At: time.Now()})
	})
	v, err := do(ctx, "task/"+w.ID)
	text, wrong := json.Marshal(v)
	if err == nil {
		err = wrong
	}
	w.host.change(w.entry, func() {
		w.Steps = slices.Clone(w.Steps)
		if s := &w.Steps[i]; err != nil {
			s.Outcome, s.Says = string(device.AsFault(err).Kind), err.Error()
		} else {
			s.Outcome, s.Result = "done", text
		}
	})
	return text, err
}

func (w *work) Input(ctx context.Context, q task.Question) (string, error) {
	w.host.change(w.entry, func() {
		w.enter(task.InputRequired)
		w.Question = &q
		w.Exchanges = append(slices.Clone(w.Exchanges), task.Exchange{Question: q})
	})
	for {
		w.host.mu.Lock()
		answer, answered := w.answers[q.ID]
		changed := w.changed
		w.host.mu.Unlock()
		if answered {
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-changed:
		}
	}
}

func (w *work) Say(text string) { w.host.change(w.entry, func() { w.Says = text }) }

// SeenBy returns the host as a client of a remote site has it: every caller is p.
func (h *Host) SeenBy(p agents.Principal) task.Host { return seenBy{h, p} }

type seenBy struct {
	host *Host
	who  agents.Principal
}

func (s seenBy) Agents(ctx context.Context, _ agents.Principal) ([]task.Agent, error) {
	return s.host.Agents(ctx, s.who)
}
func (s seenBy) Ask(ctx context.Context, _ agents.Principal, r task.Request) (task.Task, error) {
	return s.host.Ask(ctx, s.who, r)
}
func (s seenBy) Task(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return s.host.Task(ctx, s.who, id)
}
func (s seenBy) List(ctx context.Context, _ agents.Principal) ([]task.Task, error) {
	return s.host.List(ctx, s.who)
}
func (s seenBy) Watch(ctx context.Context, _ agents.Principal, id string, emit func(task.Task) error) error {
	return s.host.Watch(ctx, s.who, id, emit)
}
func (s seenBy) Answer(ctx context.Context, _ agents.Principal, id, question, answer string) (task.Task, error) {
	return s.host.Answer(ctx, s.who, id, question, answer)
}
func (s seenBy) Cancel(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return s.host.Cancel(ctx, s.who, id)
}
