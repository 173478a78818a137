package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// Tasks are the tasks of a remote site, by MCP's extension for tasks. The far side makes its own
// principal of our evidence, so the principals are not used. Its answers are untrusted data: IDs
// and names match their patterns, texts are unchanged.
type Tasks struct{ client *Client }

var _ task.Host = Tasks{}

// Tasks returns the tasks of the site.
func (c *Client) Tasks() task.Host { return Tasks{c} }

// form is a person's answer to a question.
type form struct {
	Action  string            `json:"action"`
	Content map[string]string `json:"content"`
}

// metaOf returns the metadata of every request about tasks.
func (Tasks) metaOf() (m meta) {
	m.Capabilities.Extensions.Tasks, m.Steps, m.Text = &struct{}{}, true, "none"
	return m
}

// Agents returns none for a site that hosts no agents which take tasks.
func (h Tasks) Agents(ctx context.Context, _ agents.Principal) (all []task.Agent, _ error) {
	out, err := h.list(ctx)
	for _, a := range out.Agents {
		if device.CheckName(a.Name) == nil {
			a.Skills = slices.DeleteFunc(a.Skills, func(s task.Skill) bool { return device.CheckName(s.ID) != nil })
			all = append(all, a)
		}
	}
	return all, err
}

// List leaves out the oldest tasks that have ended, where there are very many.
func (h Tasks) List(ctx context.Context, _ agents.Principal) ([]task.Task, error) {
	all, _, err := h.Listed(ctx)
	return all, err
}

// Listed returns the tasks of List, and how many that left out.
func (h Tasks) Listed(ctx context.Context) (all []task.Task, more int, err error) {
	out, err := h.list(ctx)
	for _, t := range out.Tasks {
		if err == nil {
			err = check(t, tools.AskAgent)
		}
	}
	return out.Tasks, out.More, err
}

// list calls the tool without arguments. A site without the tool has no agents and no tasks.
func (h Tasks) list(ctx context.Context) (out tools.Asked, err error) {
	_, err = h.client.operate(ctx, tools.AskAgent, struct{}{}, agents.Terms{}, &out)
	var refused *RequestError
	if errors.As(err, &refused) && refused.Kind == string(device.Invalid) {
		return tools.Asked{}, nil
	}
	return out, err
}

// Ask implements task.Host. A site that is asked again with the same key answers the same task.
func (h Tasks) Ask(ctx context.Context, _ agents.Principal, r task.Request) (task.Task, error) {
	text, err := json.Marshal(tools.OfAsk(r), json.Deterministic(true))
	if err != nil {
		return task.Task{}, err
	}
	p := params{Meta: h.metaOf(), Name: tools.AskAgent, Arguments: rpc.RawJSON(text)}
	p.Meta.Terms, p.State = r.Terms, r.Approval
	return h.ask(ctx, "tools/call", p)
}

func (h Tasks) Task(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return h.ask(ctx, "tasks/get", params{Meta: h.metaOf(), TaskID: id})
}

// ask calls a method that answers with a task.
func (h Tasks) ask(ctx context.Context, method string, p params) (task.Task, error) {
	raw, err := h.client.call(ctx, h.client.id(), method, p, nil)
	if err != nil {
		return task.Task{}, unavailable(err)
	}
	var out callResult
	if err := raw.Decode(&out); err != nil {
		return task.Task{}, &UnexpectedError{method, err}
	}
	switch t := out.Meta.Task; {
	case out.IsError:
		return task.Task{}, out.failure()
	case out.Type == "input_required" && out.Meta.Approval != "":
		return task.Task{}, &agents.ApprovalNeeded{Says: out.Meta.Approval, State: out.State}
	case t == nil:
		return task.Task{}, &UnexpectedError{method, errors.New("it has no task")}
	default:
		return *t, check(*t, method)
	}
}

// unavailable is the error of a site that knows no tasks.
func unavailable(err error) error {
	var refused *RequestError
	if errors.As(err, &refused) && refused.Kind == "" {
		return &RequestError{string(device.Unavailable), refused.Msg}
	}
	return err
}

var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// check refuses a task that no site of ours makes.
func check(t task.Task, method string) error {
	known := t.State.Ended() || slices.Contains([]task.State{task.Submitted, task.Working, task.InputRequired, task.AuthRequired}, t.State)
	switch {
	case !idForm().MatchString(t.ID):
		return &UnexpectedError{method, errors.New("the ID of its task is malformed")}
	case !known:
		return &UnexpectedError{method, fmt.Errorf("it has a task in the unknown state %.20q", t.State)}
	case t.State == task.InputRequired && t.Question == nil:
		return &UnexpectedError{method, errors.New("it has a task that waits for an answer to no question")}
	}
	return nil
}

// Answer implements task.Host. The site ignores an answer that comes when another question is
// asked; that one was given meanwhile by somebody else.
func (h Tasks) Answer(ctx context.Context, p agents.Principal, id, question, answer string) (task.Task, error) {
	t, err := h.Task(ctx, p, id)
	if err != nil {
		return t, err
	}
	if t.State != task.InputRequired || t.Question.ID != question {
		return t, device.Faultf(device.Invalid, "the task does not ask that now: it is %s", t.State)
	}
	return h.change(ctx, "tasks/update", params{TaskID: id, Responses: map[string]form{question: {"accept", map[string]string{"answer": answer}}}})
}

func (h Tasks) Cancel(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return h.change(ctx, "tasks/cancel", params{TaskID: id})
}

// change calls a method that answers nothing, and returns the task after it.
func (h Tasks) change(ctx context.Context, method string, p params) (task.Task, error) {
	p.Meta = h.metaOf()
	if _, err := h.client.call(ctx, h.client.id(), method, p, nil); err != nil {
		return task.Task{}, unavailable(err)
	}
	return h.Task(ctx, agents.Principal{}, p.TaskID)
}

// Watch implements task.Host. A site that ends, or a connection that breaks, ends the watch with
// an error; the task goes on.
func (h Tasks) Watch(ctx context.Context, _ agents.Principal, id string, emit func(task.Task) error) error {
	p := params{Meta: h.metaOf(), Notifications: &filter{TaskIDs: []string{id}}}
	w := &taskWatch{id: h.client.id(), task: id, some: make(chan struct{}, 1)}
	err := h.client.listen(ctx, w.id, p, w.heard, w.some, func() (time.Duration, error) {
		t, wrong := w.take()
		if wrong != nil || t == nil {
			return 0, wrong
		}
		if err := emit(*t); err != nil || !t.State.Ended() {
			return 0, err
		}
		return 0, errEnded
	})
	switch {
	case errors.Is(err, errEnded):
		return nil
	case errors.Is(err, errOver):
		return device.Faultf(device.Offline, "%w; the task goes on", errOver)
	}
	return unavailable(err)
}

var errEnded = errors.New("the task has ended")

// taskWatch is the newest of a task that a site has told, until emit was called with it.
type taskWatch struct {
	id   rpc.ID
	task string
	some chan struct{}

	mu    sync.Mutex
	next  *task.Task
	wrong error
}

func (w *taskWatch) take() (*task.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.next
	w.next = nil
	return t, w.wrong
}

// heard takes in a notification of the stream. It does not block.
func (w *taskWatch) heard(method string, p rpc.Raw) {
	var n struct {
		Meta struct {
			Subscription rpc.ID     `json:"io.modelcontextprotocol/subscriptionId"`
			Task         *task.Task `json:"agentsite/task"`
		} `json:"_meta"`
		Agreed *filter `json:"notifications"`
	}
	if p.Decode(&n) != nil || n.Meta.Subscription != w.id {
		return // another subscription's
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.wrong != nil:
		return
	case method == "notifications/subscriptions/acknowledged":
		if n.Agreed != nil && slices.Contains(n.Agreed.TaskIDs, w.task) {
			return
		}
		w.wrong = device.Faultf(device.Invalid, "the site has no task %.64q of yours", w.task)
	case method != "notifications/tasks":
		return
	case n.Meta.Task == nil || n.Meta.Task.ID != w.task:
		w.wrong = &UnexpectedError{listenMethod, errors.New("it tells of another task")}
	default:
		if w.wrong = check(*n.Meta.Task, listenMethod); w.wrong == nil {
			w.next = n.Meta.Task
		}
	}
	select {
	case w.some <- struct{}{}:
	default:
	}
}
