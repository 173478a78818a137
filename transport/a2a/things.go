package a2a

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// things is the agent of the site's points. It answers with messages. A call that waits for an
// owner's approval is a task, in memory only like the approval. The call is made when its caller
// reads the task after the approval.
type things struct {
	node    *node.Node
	now     func() time.Time // the site's clock
	waiting adapter.Handles[*waiting]
}

const (
	// keepWaiting is the lifetime of a task of the things. maxWaiting bounds their number, and maxOwn
	// that of one account.
	keepWaiting = 10 * time.Minute
	maxWaiting  = 256
	maxOwn      = 32
)

// waiting is a call that an owner has to approve.
type waiting struct {
	do func(context.Context) (any, error)

	mu   sync.Mutex // one try at a time
	task task.Task
}

func newThings(n *node.Node, now func() time.Time) *things {
	return &things{node: n, now: now, waiting: adapter.Handles[*waiting]{
		What: "task", Life: keepWaiting, Each: maxOwn, All: maxWaiting,
	}}
}

// operation is the data of a message: the name of an operation, and its request beside.
type operation struct {
	Name string `json:"operation"`
	//lint:ignore SA5008 an option of the JSON library
	Request jsontext.Value `json:",embed"`
}

// Decode decodes the request.
func (o *operation) Decode(into any) error {
	if o.Request == nil {
		return nil
	}
	return rpc.RawJSON(o.Request).DecodeStrict(into)
}

// order makes the call of a message.
func (h *things) order(
	ctx context.Context, c *call, m *message, data rpc.Raw, terms agents.Terms,
) (t task.Task, out *message, err error) {
	asked := new(operation)
	if err := decode(data, asked); err != nil {
		return t, nil, err
	}
	i := slices.IndexFunc(op.Operations, func(o *op.Operation) bool { return o.Name == asked.Name })
	if i < 0 {
		if data.IsZero() {
			says, err := h.usage(ctx, c.who)
			return t, c.message(m, c.form.text(says)), err
		}
		return t, nil, failf(errParams, "data.operation: there is no %.40q; use one of %s",
			asked.Name, strings.Join(operationNames(), ", "))
	}
	o := op.Operations[i]
	r, err := o.Decode(asked)
	if err != nil {
		return t, nil, invalid("data", err)
	}
	v, err := o.Ask(ctx, h.node, c.who, r, terms)
	var needs *agents.ApprovalNeeded
	switch {
	case errors.As(err, &needs) && o != op.Capture: // a task has no place for its picture
		terms.Approval = needs.State
		again := func(ctx context.Context) (any, error) { return o.Ask(ctx, h.node, c.who, r, terms) }
		return h.wait(c, needs, again), nil, nil
	case err != nil:
		return t, nil, err
	}
	text, err := encode(v)
	if err != nil {
		return t, nil, err
	}
	parts := []part{c.form.data(text)}
	if picture, ok := v.(agents.Picture); ok {
		parts = append(parts, c.form.image(picture.Data, picture.MIME))
	}
	return t, c.message(m, parts...), nil
}

// message answers a message.
func (c *call) message(to *message, parts ...part) *message {
	return c.form.message(message{ID: rand.Text(), Context: to.Context, Role: c.form.role(false), Parts: parts})
}

// wait stores a call that an owner has to approve, and returns its task. The same call sent again
// has the same ID, and replaces the task.
func (h *things) wait(c *call, needs *agents.ApprovalNeeded, do func(context.Context) (any, error)) task.Task {
	now := h.now()
	account, err := h.node.Account(c.who)
	if err != nil {
		account = c.who.ID
	}
	fresh := &waiting{do: do, task: task.Task{
		ID: needs.State, State: task.AuthRequired, Asker: c.who.ID, Created: stamp(now), Changed: stamp(now),
		Question: &task.Question{ID: needs.State, Text: needs.Says},
	}}
	h.waiting.Put(c.who, account, needs.State, fresh)
	return fresh.task
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// find returns p's waiting call with that ID.
func (h *things) find(p agents.Principal, id string) (*waiting, error) {
	w, err := h.waiting.Get(p, id)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "you have no task %.40q", id)
	}
	return w, nil
}

// ended reports whether a task of p has ended.
func (h *things) ended(p agents.Principal, id string) bool {
	w, err := h.find(p, id)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task.State.Ended()
}

// Task makes the call if an owner has approved it, and returns its task.
func (h *things) Task(ctx context.Context, p agents.Principal, id string) (task.Task, error) {
	w, err := h.find(p, id)
	if err != nil {
		return task.Task{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.task.State != task.AuthRequired {
		return w.task, nil
	}
	v, err := w.do(ctx)
	var needs *agents.ApprovalNeeded
	var text jsontext.Value
	if errors.As(err, &needs) {
		w.task.Question = &task.Question{ID: id, Text: needs.Says}
		return w.task, nil
	}
	if err == nil {
		text, err = encode(v)
	}
	w.task.Question, w.task.Changed = nil, stamp(h.now())
	if err == nil {
		w.task.State, w.task.Result = task.Completed, text
		return w.task, nil
	}
	f := device.AsFault(err)
	if w.task.State = task.Failed; f.Kind == device.Denied {
		w.task.State = task.Rejected
	}
	w.task.Says, w.task.Fault = failureOf(err).text, string(f.Kind)
	return w.task, nil
}

// List returns p's tasks without trying their calls.
func (h *things) List(_ context.Context, p agents.Principal) (all []task.Task, err error) {
	for _, w := range h.waiting.Of(p) {
		w.mu.Lock()
		all = append(all, w.task)
		w.mu.Unlock()
	}
	return all, nil
}

// Watch calls emit with the task, and again after its call. The request for approval is withdrawn
// when Watch returns without a decision.
func (h *things) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	for {
		t, err := h.Task(ctx, p, id)
		if err == nil {
			err = emit(t)
		}
		if err != nil || t.State.Ended() {
			return err
		}
		if err := h.node.Decided(ctx, p, id); err != nil {
			return err
		}
	}
}

// Cancel ends a task, whose call is then never made.
func (h *things) Cancel(_ context.Context, p agents.Principal, id string) (task.Task, error) {
	w, err := h.find(p, id)
	if err != nil {
		return task.Task{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.task.State == task.AuthRequired {
		w.task.State, w.task.Question, w.task.Changed = task.Canceled, nil, stamp(h.now())
	}
	return w.task, nil
}
