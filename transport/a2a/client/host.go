package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/fault"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// fetchAgain is how old a card may be when something is asked.
	fetchAgain = 10 * time.Minute
	// A task that is watched is asked for after pauses within these bounds.
	pollMin = time.Second
	pollMax = 8 * time.Second
	// maxMessages is how many answers without a task are kept.
	maxMessages = 32
	maxTaskID   = 64
	// messageTask begins the ID that such an answer has here; the messageId that asked for it follows.
	messageTask = "message:"
)

var _ task.Host = (*Host)(nil)

// Connect fetches the card.
func (h *Host) Connect(ctx context.Context) error {
	d, err := h.fetch(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.card, h.fetched = d, time.Now()
	return err
}

// described returns the content of the card, which is fetched again if it is older than that.
func (h *Host) described(ctx context.Context, age time.Duration) (*described, error) {
	h.mu.Lock()
	d, old := h.card, time.Since(h.fetched) > age
	h.mu.Unlock()
	if d != nil && !old {
		return d, nil
	}
	if err := h.Connect(ctx); err != nil {
		return nil, device.Faultf(device.Offline, "its card cannot be used: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.card == nil { // somebody else got another one
		return nil, device.Faultf(device.Offline, "its card cannot be used")
	}
	return h.card, nil
}

// Agents implements task.Host.
func (h *Host) Agents(ctx context.Context, _ agents.Principal) ([]task.Agent, error) {
	d, err := h.described(ctx, fetchAgain)
	if err != nil {
		return nil, fault.Told(err)
	}
	return []task.Agent{d.agent}, nil
}

// Ask implements task.Host. A request that may have been sent before is repeated only if the agent
// declares that it deduplicates messages; otherwise Ask searches for its task.
func (h *Host) Ask(ctx context.Context, _ agents.Principal, r task.Request) (task.Task, error) {
	t, err := h.ask(ctx, &r)
	return t, fault.Told(err)
}

func (h *Host) ask(ctx context.Context, r *task.Request) (task.Task, error) {
	d, err := h.described(ctx, fetchAgain)
	if err != nil {
		return task.Task{}, err
	}
	r.Via = append(slices.Clone(r.Via), h.Self.String())
	switch {
	case r.Agent != AgentName:
		return task.Task{}, device.Faultf(device.Invalid, "its only agent is called %s", AgentName)
	case len(r.Via) > agents.MaxVia:
		return task.Task{}, device.Faultf(device.Denied, "this came through %d sites and agents, which is the maximum", agents.MaxVia)
	case r.Key == nil:
		return task.Task{}, device.Faultf(device.Invalid, "what is asked has no idempotency key")
	}
	parts, err := d.parts(r)
	if err != nil {
		return task.Task{}, err
	}
	sum := sha256.Sum256([]byte(h.Self.String() + "\n" + *r.Key))
	id := hex.EncodeToString(sum[:16])
	if t, ok := h.message(messageTask + id); ok {
		return t, nil
	}
	if r.Again && !d.repeats {
		return h.find(ctx, d, id)
	}
	message := map[string]any{"messageId": id, "role": "ROLE_USER", "parts": parts, "metadata": r.Terms}
	params := map[string]any{"message": message, "configuration": map[string]any{"returnImmediately": true}}
	if d.legacy {
		message["role"], message["kind"] = "user", "message"
		params["configuration"] = map[string]any{"blocking": false}
	}
	answer, err := h.call(ctx, d, sendMessage, params)
	if err != nil {
		return task.Task{}, err
	}
	var got struct {
		Task    *wireTask `json:"task"`
		Message *wireTask `json:"message"`
	}
	if d.legacy {
		one := new(wireTask)
		if err = json.Unmarshal(answer, one); one.Kind == "message" {
			got.Message = one
		} else {
			got.Task = one
		}
	} else {
		err = json.Unmarshal(answer, &got)
	}
	switch {
	case err != nil || got.Task == nil && got.Message == nil:
		return task.Task{}, errAnswer
	case got.Task != nil:
		return got.Task.task()
	}
	return h.keep(task.Task{ID: messageTask + id, Agent: AgentName, State: task.Completed, Result: value(got.Message.Parts)}), nil
}

// parts returns the parts of a message: the text, and the skill with its arguments as data, as our
// sites take them.
func (d *described) parts(r *task.Request) (all []part, err error) {
	kind := func(name string) string {
		if d.legacy {
			return name
		}
		return ""
	}
	skill := r.Skill
	if skill == "" && r.Text == "" && len(d.agent.Skills) == 1 {
		skill = d.agent.Skills[0].ID
	}
	switch {
	case skill == "" && r.Text == "" && r.Arguments == nil:
		return nil, device.Faultf(device.Invalid, "it has %d skills: say in a text what it is to do", len(d.agent.Skills))
	case r.Skill != "" && !slices.ContainsFunc(d.agent.Skills, func(s task.Skill) bool { return s.ID == r.Skill }):
		return nil, device.Faultf(device.Invalid, "it has no skill %.40q", r.Skill)
	}
	if r.Text != "" {
		all = append(all, part{Kind: kind("text"), Text: &r.Text})
	}
	if skill != "" || r.Arguments != nil {
		data, err := json.Marshal(struct {
			Skill     string         `json:"skill,omitzero"`
			Arguments jsontext.Value `json:"arguments,omitzero"`
		}{skill, r.Arguments})
		if err != nil {
			return nil, device.Faultf(device.Invalid, "the arguments are no JSON")
		}
		all = append(all, part{Kind: kind("data"), Data: data})
	}
	return all, nil
}

// find returns the task that a message has made, which may not have got there: then nobody knows.
func (h *Host) find(ctx context.Context, d *described, message string) (task.Task, error) {
	unknown := device.Faultf(device.Unavailable, "it may have been asked before the answer was lost, and is not asked twice")
	if d.legacy {
		return task.Task{}, unknown
	}
	answer, err := h.call(ctx, d, listTasks, map[string]any{"pageSize": 50, "historyLength": 10})
	if err != nil {
		if kind := device.AsFault(err).Kind; kind == device.Offline || kind == device.UnknownOutcome {
			return task.Task{}, err
		}
		return task.Task{}, unknown
	}
	var list struct {
		Tasks []wireTask `json:"tasks"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return task.Task{}, unknown
	}
	for _, w := range list.Tasks {
		for _, m := range w.History {
			if m.ID == message {
				return w.task()
			}
		}
	}
	return task.Task{}, unknown
}

// keep keeps an answer without a task for its watcher.
func (h *Host) keep(t task.Task) task.Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.messages) == maxMessages {
		h.messages = slices.Delete(h.messages, 0, 1)
	}
	h.messages = append(h.messages, t)
	return t
}

func (h *Host) message(id string) (task.Task, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.messages, func(t task.Task) bool { return t.ID == id })
	if i < 0 {
		return task.Task{}, false
	}
	return h.messages[i], true
}

// Task implements task.Host.
func (h *Host) Task(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	t, err := h.about(ctx, getTask, id)
	return t, fault.Told(err)
}

// about calls a method about a task.
func (h *Host) about(ctx context.Context, m method, id string) (t task.Task, err error) {
	if t, ok := h.message(id); ok {
		return t, nil
	}
	if strings.HasPrefix(id, messageTask) {
		return t, device.Faultf(device.Invalid, "nothing is known of its answer any more")
	}
	d, err := h.described(ctx, fetchAgain)
	if err != nil {
		return t, err
	}
	answer, err := h.call(ctx, d, m, map[string]any{"id": id})
	if err != nil {
		return t, err
	}
	var w wireTask
	if json.Unmarshal(answer, &w) != nil || w.ID != id {
		return t, errAnswer
	}
	return w.task()
}

// List implements task.Host. It lists nothing: tasks are listed where they were asked for.
func (*Host) List(context.Context, agents.Principal) ([]task.Task, error) { return nil, nil }

// Watch implements task.Host. It asks for the task again and again.
func (h *Host) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	last := task.State("")
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		t, err := h.Task(ctx, p, id)
		if err != nil {
			return err
		}
		if t.State != last {
			last = t.State
			if err := emit(t); err != nil {
				return err
			}
		}
		if t.State.Ended() {
			return nil
		}
		if err := device.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Answer implements task.Host. It always fails, because a step has no person to answer.
func (*Host) Answer(context.Context, agents.Principal, string, string, string) (task.Task, error) {
	return task.Task{}, fault.Told(device.Faultf(device.Invalid, "only those who ask it themselves can answer"))
}

// Cancel implements task.Host. A task that had ended is returned as it is.
func (h *Host) Cancel(ctx context.Context, p agents.Principal, id string) (task.Task, error) {
	t, err := h.about(ctx, cancelTask, id)
	if err != nil && device.AsFault(err).Kind == device.Invalid {
		return h.Task(ctx, p, id)
	}
	return t, fault.Told(err)
}
