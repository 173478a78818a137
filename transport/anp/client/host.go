package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/fault"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxCalls is how many calls are kept: those that were asked for, and those that ended last.
	maxCalls = 32
	// describeAgain is the maximum age of a description for a request. lookAgain is that for an
	// unknown method, because this site's key may have received a permission since.
	describeAgain = 10 * time.Minute
	lookAgain     = 2 * time.Second
)

// Host is the methods of an agent elsewhere as agents that take tasks: each is one, by the method's
// name. A task is one call. It is made when the task is watched first, and never twice: after a
// restart nothing is known of it.
type Host struct {
	client *Client

	mu        sync.Mutex
	agent     *Agent
	described time.Time
	calls     []*call // the oldest first
}

var _ task.Host = (*Host)(nil)

// call is a task.
type call struct {
	task   task.Task // without a result until it has ended
	method *Method
	params jsontext.Value
	terms  agents.Terms
	key    string

	making sync.Mutex // held while it is made
}

// NewHost returns the host of a client, which knows no methods before Connect.
func NewHost(c *Client) *Host { return &Host{client: c} }

// Connect fetches the description.
func (h *Host) Connect(ctx context.Context) error {
	a, err := h.client.Describe(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agent, h.described = a, time.Now()
	return nil
}

// methods returns the methods that an agent of this site can name, and fetches the description
// anew where it is older than that.
func (h *Host) methods(ctx context.Context, age time.Duration) ([]Method, error) {
	h.mu.Lock()
	a, old := h.agent, time.Since(h.described) > age
	h.mu.Unlock()
	if a == nil || old {
		if err := h.Connect(ctx); err != nil {
			return nil, device.Faultf(device.Offline, "its description cannot be used: %s", err)
		}
		h.mu.Lock()
		a = h.agent
		h.mu.Unlock()
	}
	return slices.DeleteFunc(slices.Clone(a.Methods), func(m Method) bool { return device.CheckName(m.Name) != nil }), nil
}

// Agents implements task.Host.
func (h *Host) Agents(ctx context.Context, _ agents.Principal) (all []task.Agent, err error) {
	methods, err := h.methods(ctx, describeAgain)
	for _, m := range methods {
		says := m.Description
		if says == "" {
			says = m.Summary
		}
		all = append(all, task.Agent{Name: m.Name, Description: says, Skills: []task.Skill{{ID: "call", Description: says}}})
	}
	return all, fault.Told(err)
}

// Ask implements task.Host. It calls nothing yet.
func (h *Host) Ask(ctx context.Context, _ agents.Principal, r task.Request) (task.Task, error) {
	t, err := h.ask(ctx, r)
	return t, fault.Told(err)
}

func (h *Host) ask(ctx context.Context, r task.Request) (task.Task, error) {
	key := ""
	if r.Key != nil {
		key = *r.Key
	}
	h.mu.Lock()
	for _, c := range h.calls {
		if key != "" && c.key == key {
			defer h.mu.Unlock()
			return c.task, nil
		}
	}
	h.mu.Unlock()
	var methods []Method
	i := -1
	for _, age := range []time.Duration{describeAgain, lookAgain} {
		var err error
		if methods, err = h.methods(ctx, age); err != nil {
			return task.Task{}, err
		}
		if i = slices.IndexFunc(methods, func(m Method) bool { return m.Name == r.Agent }); i >= 0 {
			break
		}
	}
	switch {
	case i < 0:
		return task.Task{}, device.Faultf(device.Invalid, "it has no method %.40q that can be called", r.Agent)
	case r.Skill != "" && r.Skill != "call":
		return task.Task{}, device.Faultf(device.Invalid, "the skill of a method is call, not %.40q", r.Skill)
	}
	params, err := methods[i].params(r)
	if err != nil {
		return task.Task{}, err
	}
	now := h.client.Now().UTC().Format(time.RFC3339)
	c := &call{task: task.Task{ID: rand.Text(), Agent: r.Agent, State: task.Submitted, Created: now, Changed: now}, method: &methods[i], params: params, terms: r.Terms, key: key}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) == maxCalls {
		ended := slices.IndexFunc(h.calls, func(c *call) bool { return c.task.State.Ended() })
		if ended < 0 {
			return task.Task{}, device.Faultf(device.Busy, "%d calls of it have not ended", maxCalls)
		}
		h.calls = slices.Delete(h.calls, ended, ended+1)
	}
	h.calls = append(h.calls, c)
	return c.task, nil
}

// params returns the parameters of a call: the arguments, or the text for a method that needs one
// text and nothing else.
func (m *Method) params(r task.Request) (jsontext.Value, error) {
	var args map[string]jsontext.Value
	if len(r.Arguments) > 0 {
		if err := json.Unmarshal(r.Arguments, &args); err != nil {
			return nil, device.Faultf(device.Invalid, "the arguments are an object with the parameters by their names")
		}
	}
	var needed []string
	for _, p := range m.Params {
		if p.Required && args[p.Name] == nil {
			needed = append(needed, p.Name)
		}
	}
	switch {
	case r.Text != "" && len(needed) != 1:
		return nil, device.Faultf(device.Invalid, "%s takes no text: it needs %d parameters%s", m.Name, len(needed), list(needed))
	case r.Text != "":
		text, err := json.Marshal(r.Text)
		if err != nil {
			return nil, device.Faultf(device.Invalid, "the text is no UTF-8")
		}
		if args == nil {
			args = make(map[string]jsontext.Value)
		}
		args[needed[0]] = text
	case len(needed) > 0:
		return nil, device.Faultf(device.Invalid, "%s needs the parameters%s", m.Name, list(needed))
	}
	if args == nil {
		return nil, nil
	}
	return json.Marshal(args, json.Deterministic(true))
}

func list(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" %.200s", strings.Join(names, ", "))
}

// find returns a call by its ID.
func (h *Host) find(id string) (*call, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.task.ID == id {
			return c, nil
		}
	}
	return nil, fault.Told(device.Faultf(device.Invalid, "nothing is known of this call any more: it may have been made"))
}

func (h *Host) now(c *call) task.Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.task
}

// Watch implements task.Host: it makes the call, unless that was made.
func (h *Host) Watch(ctx context.Context, _ agents.Principal, id string, emit func(task.Task) error) error {
	c, err := h.find(id)
	if err != nil {
		return err
	}
	if err := h.make(ctx, c); err != nil {
		return fault.Told(err)
	}
	return emit(h.now(c))
}

// make makes a call once. An error is that of a call that did not begin, and may be made again.
func (h *Host) make(ctx context.Context, c *call) error {
	c.making.Lock()
	defer c.making.Unlock()
	if h.now(c).State.Ended() {
		return nil
	}
	result, err := h.client.Call(ctx, c.method, c.params, c.terms)
	if err != nil && device.AsFault(err).Kind == device.Offline { // nothing was sent
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.task.Changed = h.client.Now().UTC().Format(time.RFC3339)
	if err != nil {
		f := device.AsFault(err)
		c.task.State, c.task.Fault, c.task.Says = task.Failed, string(f.Kind), f.Msg
		return nil
	}
	c.task.State, c.task.Result = task.Completed, result
	return nil
}

// Task implements task.Host.
func (h *Host) Task(_ context.Context, _ agents.Principal, id string) (task.Task, error) {
	c, err := h.find(id)
	if err != nil {
		return task.Task{}, err
	}
	return h.now(c), nil
}

// List implements task.Host.
func (h *Host) List(context.Context, agents.Principal) (all []task.Task, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range slices.Backward(h.calls) {
		t := c.task
		t.Result = nil
		all = append(all, t)
	}
	return all, nil
}

// Answer implements task.Host: no call asks anything.
func (h *Host) Answer(context.Context, agents.Principal, string, string, string) (task.Task, error) {
	return task.Task{}, fault.Told(device.Faultf(device.Invalid, "it asks nothing"))
}

// Cancel implements task.Host. A call that has not begun is never made; a running call ends first.
func (h *Host) Cancel(_ context.Context, _ agents.Principal, id string) (task.Task, error) {
	c, err := h.find(id)
	if err != nil {
		return task.Task{}, err
	}
	c.making.Lock()
	defer c.making.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !c.task.State.Ended() {
		c.task.State = task.Canceled
	}
	return c.task, nil
}
