package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// tasks are the tasks of an agent, as task.Host has them.
type tasks interface {
	Task(ctx context.Context, p agents.Principal, id string) (task.Task, error)
	List(ctx context.Context, p agents.Principal) ([]task.Task, error)
	task.Watcher
	Cancel(ctx context.Context, p agents.Principal, id string) (task.Task, error)
}

// take handles a message, and begins the push notifications of its task. It checks their
// configuration before it does anything; a configuration without an ID gets the message's.
func (s *server) take(ctx context.Context, c *call, p *sendParams) (t task.Task, m *message, err error) {
	if err := p.check(c.form); err != nil {
		return t, nil, err
	}
	c.form = c.form.accept(p.Configuration.Accepts)
	config := cmp.Or(p.Configuration.Push, p.Configuration.PushOld, p.Configuration.PushProto)
	if config == nil {
		return s.takeMessage(ctx, c, p)
	}
	config.ID = cmp.Or(config.ID, p.Message.ID)
	push, err := s.pushes.reserve(c, *config)
	if err != nil {
		return t, nil, err
	}
	if t, m, err = s.takeMessage(ctx, c, p); err != nil || m != nil {
		s.pushes.drop(push)
		return t, m, err
	}
	return t, nil, s.pushes.begin(push, t.ID)
}

// takeMessage makes a task of a message, or answers a question of one, or answers with a message.
func (s *server) takeMessage(ctx context.Context, c *call, p *sendParams) (t task.Task, m *message, err error) {
	text, data, err := p.Message.content()
	if err != nil {
		return t, nil, err
	}
	terms, err := s.terms(c, &p.Message)
	switch {
	case err != nil:
		return t, nil, err
	case p.Message.Task != "":
		t, err = s.follow(ctx, c, &p.Message, text, data)
	case c.agent == "":
		return s.things.order(ctx, c, &p.Message, data, terms)
	default:
		t, err = s.ask(ctx, c, p.Message.Context, text, data, terms)
	}
	return t, nil, err
}

// ask asks a hosted agent for a task.
func (s *server) ask(
	ctx context.Context, c *call, group, text string, data rpc.Raw, terms agents.Terms,
) (t task.Task, err error) {
	var o order
	if err := data.DecodeStrict(&o); err != nil {
		return t, invalid("data", err)
	}
	return s.Tasks.Ask(ctx, c.who, task.Request{
		Agent: c.agent, Skill: o.Skill, Text: text, Arguments: o.Arguments, Seconds: o.Seconds, Context: group,
		Terms: terms,
	})
}

// follow takes a message to an existing task: the answer to its question. A message to a task that
// waits for an owner tries its call again, which may end the task.
func (s *server) follow(ctx context.Context, c *call, m *message, text string, data rpc.Raw) (task.Task, error) {
	waited := c.agent == "" && !s.things.ended(c.who, m.Task)
	t, err := c.task(ctx, m.Task)
	switch {
	case err != nil:
		return t, err
	case m.Context != "" && m.Context != t.Conversation():
		return t, failf(errParams, "message.contextId: this task is in another context")
	case waited || t.State == task.AuthRequired:
		return t, nil
	case t.State.Ended():
		return t, failf(errUnsupported, "this task has ended: send a message without a taskId, for another one")
	case t.State != task.InputRequired || t.Question == nil:
		return t, failf(errUnsupported, "this task is at work: it takes a message while it is %s",
			c.form.state(task.InputRequired))
	}
	if text == "" {
		raw, err := data.JSONText()
		if err != nil {
			return t, invalid("message.parts", err)
		}
		text = string(raw)
	}
	return s.Tasks.Answer(ctx, c.who, t.ID, t.Question.ID, text)
}

// task returns a task of the agent that the caller may see.
func (c *call) task(ctx context.Context, id string) (task.Task, error) {
	t, err := c.tasks.Task(ctx, c.who, id)
	if err != nil && device.AsFault(err).Kind == device.Invalid || err == nil && t.Agent != c.agent {
		return t, failf(errTaskNotFound, "you have no such task with this agent")
	}
	return t, err
}

// interrupted reports whether a task has ended, or does not go on by itself.
func interrupted(t task.Task) bool {
	return t.Settled() || t.State == task.AuthRequired
}

// send sends a message, and waits for the end of its task unless it is not to (section 3.2.2).
func (s *server) send(ctx context.Context, c *call, p *sendParams) (any, error) {
	t, m, err := s.take(ctx, c, p)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return c.form.wire(reply{Message: m}), nil
	}
	immediate := p.Configuration.Immediate
	if blocking := p.Configuration.Blocking; c.form.legacy && blocking != nil {
		immediate = !*blocking
	} else if c.form.proto {
		immediate = true // as protocol buffers read a missing member
	}
	if !immediate && !interrupted(t) {
		err := s.While(ctx, c.who, func(ctx context.Context) error {
			return task.WatchUntil(ctx, c.tasks, c.who, t.ID, func(now task.Task) (bool, error) {
				t = now
				return interrupted(t), nil
			})
		})
		if err != nil && !interrupted(t) {
			return nil, err
		}
	}
	return c.form.wire(reply{Task: c.form.task(t, p.Configuration.History)}), nil
}

// stream sends a message, and emits its task until that has ended or asks something.
func (s *server) stream(ctx context.Context, c *call, p *sendParams) (any, error) {
	t, m, err := s.take(ctx, c, p)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return nil, c.emit(reply{Message: m})
	}
	return nil, s.watch(ctx, c, t.ID, p.Configuration.History, true)
}

// subscribe emits a task until it has ended.
func (s *server) subscribe(ctx context.Context, c *call, p *taskParams) (any, error) {
	t, err := c.task(ctx, p.ID)
	if err == nil && t.State.Ended() {
		err = failf(errUnsupported, "this task has ended: ask for it")
	}
	if err != nil {
		return nil, err
	}
	return nil, s.watch(ctx, c, p.ID, nil, false)
}

// watch emits a task, and then its changes.
func (s *server) watch(ctx context.Context, c *call, id string, history *int, untilInput bool) error {
	var before task.Task
	return s.While(ctx, c.who, func(ctx context.Context) error {
		return task.WatchUntil(ctx, c.tasks, c.who, id, func(t task.Task) (bool, error) {
			final := t.State.Ended() || untilInput && t.Settled()
			events := []reply{{Task: c.form.task(t, history)}}
			if before.ID != "" {
				events = c.form.updates(before, t, final)
			}
			before = t
			for _, e := range events {
				if err := c.emit(e); err != nil {
					return false, err
				}
			}
			return final, nil
		})
	})
}

func (s *server) get(ctx context.Context, c *call, p *taskParams) (*wireTask, error) {
	if err := checkHistory(p.History); err != nil {
		return nil, err
	}
	t, err := c.task(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	return c.form.task(t, p.History), nil
}

func (s *server) cancel(ctx context.Context, c *call, p *taskParams) (*wireTask, error) {
	t, err := c.task(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	if !t.State.Ended() {
		if t, err = c.tasks.Cancel(ctx, c.who, p.ID); err != nil {
			return nil, err
		}
		if t.State == task.Canceled {
			return c.form.task(t, nil), nil
		}
	}
	return nil, failf(errNotCancelable, "this task has ended: it is %s", c.form.state(t.State))
}

const (
	usualPage = 50
	maxPage   = 100
)

// list returns a page of the tasks, those that changed last first (section 3.1.4).
func (s *server) list(ctx context.Context, c *call, p *listParams) (*taskList, error) {
	size, none := usualPage, 0
	if p.Size != nil {
		size = *p.Size
	}
	state, after := c.form.stateOf(p.Status), time.Time{}
	err := checkHistory(p.History)
	switch {
	case err != nil:
		return nil, err
	case size < 1 || size > maxPage:
		return nil, failf(errParams, "pageSize: is 1 to %d", maxPage)
	case p.Status != "" && state == "":
		return nil, failf(errParams, "status: there is no state %.40q", p.Status)
	}
	if p.After != "" {
		if after, err = time.Parse(time.RFC3339, p.After); err != nil {
			return nil, failf(errParams, "statusTimestampAfter: is a time such as 2026-11-24T05:00:00Z")
		}
	}
	cursor, err := base64.RawURLEncoding.DecodeString(p.Token)
	if err != nil || len(cursor) > maxID {
		return nil, failf(errParams, "pageToken: is not one of this site's")
	}
	all, err := c.tasks.List(ctx, c.who)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t task.Task) bool {
		changed, err := time.Parse(time.RFC3339, t.Changed)
		return t.Agent != c.agent || p.Context != "" && p.Context != t.Conversation() || state != "" && state != t.State ||
			p.After != "" && (err != nil || changed.Before(after))
	})
	slices.SortFunc(all, func(a, b task.Task) int { return cmp.Compare(position(b), position(a)) })
	out := &taskList{Tasks: []*wireTask{}, Size: size, Total: len(all)}
	for i, t := range all {
		if p.Token != "" && position(t) >= string(cursor) {
			continue
		}
		if len(out.Tasks) == size {
			out.Next = base64.RawURLEncoding.EncodeToString([]byte(position(all[i-1])))
			break
		}
		history := cmp.Or(p.History, &none)
		if p.Artifacts || *history > 0 {
			if whole, err := c.tasks.Task(ctx, c.who, t.ID); err == nil { // else it is forgotten by now
				t = whole
			}
		}
		w := c.form.task(t, history)
		if !p.Artifacts {
			w.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, w)
	}
	return out, nil
}

// position orders tasks by their last change.
func position(t task.Task) string { return strings.Join([]string{t.Changed, t.ID}, " ") }
