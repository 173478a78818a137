package a2a

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// form is a version of the protocol. The zero form is 1.0, which writes the enumerations of its
// protocol buffers. 0.3 writes lower-case words, and names each object's kind. Over HTTP with JSON
// 0.3 writes protocol buffers, too, which differ from those of 1.0 in messages and data.
type form struct {
	legacy, proto bool
	// texts: the client accepts texts and no data.
	texts bool
}

// accept restricts the form to what a client accepts; no modes are all.
func (f form) accept(modes []string) form {
	f.texts = len(modes) > 0 && !slices.ContainsFunc(modes, func(mode string) bool {
		mode, _, _ = strings.Cut(strings.ToLower(mode), ";")
		return mode == jsonMode || mode == "application/*" || mode == "*/*"
	})
	return f
}

// plain reports whether the form is that of 0.3 over JSON-RPC.
func (f form) plain() bool { return f.legacy && !f.proto }

// formOf returns the version that a request names; without a name it is 0.3 (section 3.6.2).
func formOf(version string) (form, error) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".") // a patch number changes nothing
	switch major + "." + minor {
	case "1.0":
		return form{}, nil
	case "0.3", ".":
		return form{legacy: true}, nil
	}
	return form{}, failf(errVersion, "this site speaks 1.0 and 0.3, not %.20q; the header A2A-Version says which", version)
}

// states are the states of tasks in 1.0. In 0.3 they are the task package's words with hyphens.
var states = map[task.State]string{
	task.Submitted:     "TASK_STATE_SUBMITTED",
	task.Working:       "TASK_STATE_WORKING",
	task.InputRequired: "TASK_STATE_INPUT_REQUIRED",
	task.AuthRequired:  "TASK_STATE_AUTH_REQUIRED",
	task.Completed:     "TASK_STATE_COMPLETED",
	task.Failed:        "TASK_STATE_FAILED",
	task.Rejected:      "TASK_STATE_REJECTED",
	task.Canceled:      "TASK_STATE_CANCELED",
}

func (f form) state(s task.State) string {
	switch {
	case f.plain():
		return strings.ReplaceAll(string(s), "_", "-")
	case f.proto && s == task.Canceled:
		return "TASK_STATE_CANCELLED"
	}
	return states[s]
}

// stateOf returns the state of that name; "" for none.
func (f form) stateOf(name string) task.State {
	for s := range states {
		if f.state(s) == name {
			return s
		}
	}
	return ""
}

func (f form) role(user bool) string {
	switch {
	case f.plain() && user:
		return "user"
	case f.plain():
		return "agent"
	case user:
		return "ROLE_USER"
	}
	return "ROLE_AGENT"
}

// kind returns the discriminator of an object, which protocol buffers do not have.
func (f form) kind(name string) string {
	if f.plain() {
		return name
	}
	return ""
}

func (f form) text(text string) part { return part{Kind: f.kind("text"), Text: &text} }

// data returns a value as a part. In 0.3 that is an object.
func (f form) data(value jsontext.Value) part {
	if f.texts {
		return f.text(string(value))
	}
	if !f.legacy {
		return part{Data: value, MediaType: "application/json"}
	}
	if value.Kind() != '{' {
		value = append(append(jsontext.Value(`{"value":`), value...), '}')
	}
	if f.proto {
		value = append(append(jsontext.Value(`{"data":`), value...), '}')
	}
	return part{Kind: f.kind("data"), Data: value}
}

func (f form) image(data []byte, mime string) part {
	if !f.legacy {
		return part{Raw: &data, MediaType: mime}
	}
	if f.proto {
		return part{File: &file{WithBytes: data, MIME: mime}}
	}
	return part{Kind: "file", File: &file{Bytes: data, MIME: mime}}
}

// result returns the result of a task as parts: its words, and the whole as data where that is more.
func (f form) result(t task.Task) (all []part) {
	words, ok := t.Words()
	if ok {
		all = append(all, f.text(words))
	}
	if t.Result.Kind() != '"' && !(f.texts && ok) {
		all = append(all, f.data(t.Result))
	}
	return all
}

// reply is an answer, or an event of a stream: one of its fields.
type reply struct {
	Task     *wireTask       `json:"task,omitzero"`
	Message  *message        `json:"message,omitzero"`
	Status   *statusUpdate   `json:"statusUpdate,omitzero"`
	Artifact *artifactUpdate `json:"artifactUpdate,omitzero"`
}

// message returns a message, whose parts have another name in the protocol buffers of 0.3.
func (f form) message(m message) *message {
	m.Kind = f.kind("message")
	if f.proto {
		m.Content, m.Parts = m.Parts, nil
	}
	return &m
}

// read reverses message and data for a received message.
func (f form) read(m *message) {
	if !f.proto {
		return
	}
	m.Parts, m.Content = m.Content, nil
	for i := range m.Parts {
		var inner struct {
			Data jsontext.Value `json:"data"`
		}
		if of := &m.Parts[i]; of.Data != nil && json.Unmarshal(of.Data, &inner) == nil {
			of.Data = inner.Data
		}
	}
}

// wire returns the reply as its version writes it: 0.3 has the object itself.
func (f form) wire(r reply) any {
	switch {
	case !f.plain():
		return r
	case r.Task != nil:
		return r.Task
	case r.Message != nil:
		return r.Message
	case r.Status != nil:
		return r.Status
	}
	return r.Artifact
}

// task returns a task with at most that many messages of its history; nil for all.
func (f form) task(t task.Task, history *int) *wireTask {
	out := &wireTask{ID: t.ID, Context: t.Conversation(), Kind: f.kind("task"), Status: f.status(t), Artifacts: f.artifacts(t)}
	if history == nil || *history > 0 {
		out.History = f.history(t)
	}
	if history != nil && *history < len(out.History) {
		out.History = out.History[len(out.History)-*history:]
	}
	if t.Fault != "" {
		out.Metadata = map[string]string{"agentsite/fault": t.Fault}
	}
	return out
}

// history returns the messages of a task but for the one of its status: the message that asked for
// it, and the questions with their answers. Those of a list have none.
func (f form) history(t task.Task) (all []message) {
	say := func(id string, user bool, parts ...part) {
		all = append(all, *f.message(message{ID: id, Context: t.Conversation(), Task: t.ID, Role: f.role(user), Parts: parts}))
	}
	var asked []part
	if t.Text != "" {
		asked = append(asked, f.text(t.Text))
	}
	if t.Arguments != nil || t.Text == "" && t.Skill != "" {
		if value, err := json.Marshal(order{Skill: t.Skill, Arguments: t.Arguments}); err == nil {
			asked = append(asked, f.data(value))
		}
	}
	if asked != nil {
		say(cmp.Or(t.Key, "asked-"+t.ID), true, asked...)
	}
	for _, x := range t.Exchanges {
		if t.Question == nil || t.Question.ID != x.ID {
			say(questionID(t, x.ID), false, f.question(&x.Question)...)
		}
		if x.Answer != "" {
			say("answer-"+t.ID+"-"+x.ID, true, f.text(x.Answer))
		}
	}
	return all
}

// questionID returns the messageId of a task's question.
func questionID(t task.Task, id string) string { return "question-" + t.ID + "-" + id }

// question returns a question and its options.
func (f form) question(q *task.Question) []part {
	parts := []part{f.text(q.Text)}
	if len(q.Options) > 0 && !f.texts {
		if value, err := json.Marshal(map[string][]string{"options": q.Options}); err == nil {
			parts = append(parts, f.data(value))
		}
	}
	return parts
}

func (f form) status(t task.Task) status {
	out := status{State: f.state(t.State), Timestamp: t.Changed}
	m := message{ID: "status-" + t.ID, Context: t.Conversation(), Task: t.ID, Role: f.role(false)}
	switch q := t.Question; {
	case q != nil:
		m.ID, m.Parts = questionID(t, q.ID), f.question(q)
	case t.Says != "":
		m.Parts = []part{f.text(t.Says)}
	default:
		return out
	}
	out.Message = f.message(m)
	return out
}

// artifacts returns the result of a task, if it has one.
func (f form) artifacts(t task.Task) []artifact {
	if t.State != task.Completed || t.Result == nil || t.Result.Kind() == 'n' {
		return nil
	}
	return []artifact{{ID: "result", Name: "result", Parts: f.result(t)}}
}

// updates returns the events that tell of a task's change.
func (f form) updates(before, now task.Task, final bool) (all []reply) {
	if now.State == task.Completed && before.State != now.State {
		for _, a := range f.artifacts(now) {
			all = append(all, reply{Artifact: &artifactUpdate{Task: now.ID, Context: now.Conversation(), Kind: f.kind("artifact-update"), Artifact: a, Last: true}})
		}
	}
	u := &statusUpdate{Task: now.ID, Context: now.Conversation(), Kind: f.kind("status-update"), Status: f.status(now)}
	if f.legacy {
		u.Final = &final
	}
	return append(all, reply{Status: u})
}
