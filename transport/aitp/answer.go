package aitp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// waits is the state of a thread: the kind of message that it waits for.
type waits uint8

const (
	forNothing  waits = iota
	forTool           // a decision: which operation
	forData           // the arguments that are missing
	forApproval       // an owner's approval, and a decision to ask again
	forAnswer         // an answer to a task's question
)

// pending is the request that a thread has made, and its continuation. The zero pending waits for
// nothing.
type pending struct {
	waits
	id      string // of the request
	options []string
	call    call
	task    string // of forAnswer, as the next
	asks    string
}

// call is an operation that is asked for.
type call struct {
	tool  string
	args  map[string]jsontext.Value
	terms agents.Terms
}

// say adds a caller's message to a thread, and then the site's answer. A return to safe does not
// wait for the message before.
func (a *server) say(ctx context.Context, who agents.Principal, t *thread, m incoming) (message, error) {
	if c, ok := m.toSafe(); ok {
		said := t.add("user", answerMetadata{Actor: m.Metadata.Actor}, m.texts...)
		if err := a.do(ctx, who, t, c); err != nil {
			a.refuse(t, err)
		}
		return said, nil
	}
	if err := t.begin(); err != nil {
		return message{}, err
	}
	defer t.end()
	said := t.add("user", answerMetadata{Actor: m.Metadata.Actor}, m.texts...)
	if err := a.answer(ctx, who, t, m); err != nil {
		a.refuse(t, err)
	}
	return said, nil
}

// toSafe returns the call in a message if it is an emergency stop (with any arguments), the release
// of an output or the end of a task. None of them asks its caller for input.
func (m incoming) toSafe() (c call, ok bool) {
	p, _, err := parsePayload(m.texts)
	if err != nil {
		return c, false
	}
	c = call{p.Operation, make(map[string]jsontext.Value), m.Metadata.Terms}
	switch {
	case p.Operation == agents.OpStop.Tool():
		return c, true
	case p.Arguments == nil || json.Unmarshal(p.Arguments, &c.args) != nil:
		return c, false
	}
	return c, p.Operation == tools.ReleaseOutput && c.args["output"] != nil || p.Operation == tools.AskAgent && c.args["task"] != nil && string(c.args["cancel"]) == "true"
}

// refuse says what went wrong.
func (a *server) refuse(t *thread, err error) {
	f := device.AsFault(err)
	says := f.Msg
	if f.Kind == device.Internal {
		if !errors.Is(err, context.Canceled) { // a caller that left is no defect
			slog.Error("a request failed", "protocol", "aitp", "err", err)
		}
		says = "the site failed at this; its log says more"
	}
	t.add("assistant", answerMetadata{Actor: t.site, Fault: f.Kind}, "This was not done: "+says)
}

// ask makes a request of a capability, which the thread then waits for.
func (a *server) ask(t *thread, p pending, meta answerMetadata, says string, request func(id string) any) error {
	t.calls++
	p.id = "request-" + strconv.Itoa(t.calls)
	text, err := json.Marshal(request(p.id), json.Deterministic(true))
	if err != nil {
		return err
	}
	t.pending, meta.Actor = p, t.site
	t.add("assistant", meta, says, string(text))
	return nil
}

// decide makes a request for a decision.
func (a *server) decide(t *thread, p pending, meta answerMetadata, kind, title, says string, options []decisionOption) error {
	for _, o := range options {
		p.options = append(p.options, o.ID)
	}
	return a.ask(t, p, meta, says, func(id string) any {
		r := requestDecision{Schema: decisionsSchema}
		r.Decision.ID, r.Decision.Title, r.Decision.Description = id, title, says
		r.Decision.Type, r.Decision.Options = kind, options
		return r
	})
}

// form makes a request for data.
func (a *server) form(t *thread, p pending, title, says string, fields []formField) error {
	return a.ask(t, p, answerMetadata{}, says, func(id string) any {
		r := requestData{Schema: dataSchema}
		r.Data.ID, r.Data.Title, r.Data.Description, r.Data.Form.Fields = id, title, says, fields
		return r
	})
}

// answer answers a message.
func (a *server) answer(ctx context.Context, who agents.Principal, t *thread, m incoming) error {
	p, ok, err := parsePayload(m.texts)
	switch {
	case err != nil:
		return err
	case !ok:
		return a.offer(ctx, who, t)
	case p.Operation != "":
		c := call{p.Operation, make(map[string]jsontext.Value), m.Metadata.Terms}
		if p.Arguments != nil {
			if err := json.Unmarshal(p.Arguments, &c.args); err != nil {
				return device.Faultf(device.Invalid, "arguments: %w", err)
			}
		}
		return a.complete(ctx, who, t, c)
	case p.Decision != nil:
		return a.decided(ctx, who, t, p)
	}
	return a.filled(ctx, who, t, p)
}

// offered are the tools that a thread can carry; pictures it cannot.
func (a *server) offered(ctx context.Context, who agents.Principal) ([]tools.Tool, error) {
	all, err := a.Tools.Tools(ctx, who)
	return slices.DeleteFunc(slices.Clone(all), func(t tools.Tool) bool { return t.Name == agents.OpCapture.Tool() }), err
}

// offer asks which operation is meant.
func (a *server) offer(ctx context.Context, who agents.Principal, t *thread) error {
	all, err := a.offered(ctx, who)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return device.Faultf(device.Denied, "there is nothing here that you may do")
	}
	var options []decisionOption
	for _, tool := range all {
		options = append(options, decisionOption{tool.Name, tool.Title, tool.Description})
	}
	return a.decide(t, pending{waits: forTool}, answerMetadata{}, "radio", "What shall be done?",
		"This site understands no plain language. Choose what is to be done.", options)
}

// current refuses an answer to anything but the thread's request. It ends the request: an answered
// request is not answered again.
func (t *thread) current(id string, of ...waits) (pending, error) {
	p := t.pending
	if !slices.Contains(of, p.waits) || id != "" && id != p.id {
		return p, device.Faultf(device.Invalid, "the thread does not wait for this, or no more: say what is to be done")
	}
	t.pending = pending{}
	return p, nil
}

// decided goes on after a decision.
func (a *server) decided(ctx context.Context, who agents.Principal, t *thread, with payload) error {
	p, err := t.current(with.Decision.Request, forTool, forApproval, forAnswer)
	if err != nil {
		return err
	}
	if len(with.Decision.Options) != 1 || !slices.Contains(p.options, with.Decision.Options[0].ID) {
		t.pending = p
		return device.Faultf(device.Invalid, "choose one of the options of %s", p.id)
	}
	chosen := with.Decision.Options[0].ID
	switch p.waits {
	case forTool:
		return a.complete(ctx, who, t, call{tool: chosen, args: make(map[string]jsontext.Value)})
	case forAnswer:
		return a.respond(ctx, who, t, p, chosen)
	}
	if chosen != optionAgain {
		t.add("assistant", answerMetadata{Actor: t.site}, "It is not done.")
		return nil
	}
	return a.do(ctx, who, t, p.call)
}

// filled goes on after a form.
func (a *server) filled(ctx context.Context, who agents.Principal, t *thread, with payload) error {
	p, err := t.current(with.Data.Request, forData, forAnswer)
	if err != nil {
		return err
	}
	again := func(format string, args ...any) error {
		t.pending = p
		return device.Faultf(device.Invalid, format, args...)
	}
	if p.waits == forAnswer {
		if len(with.Data.Fields) != 1 {
			return again("fill in the one field of %s", p.id)
		}
		return a.respond(ctx, who, t, p, with.Data.Fields[0].Value)
	}
	in, err := a.inputOf(ctx, who, p.call.tool)
	if err != nil {
		return err
	}
	for _, f := range with.Data.Fields {
		of := in.Properties[f.ID]
		if of == nil {
			return again("%s has no field %.40q", p.id, f.ID)
		}
		if f.Value == "" {
			continue
		}
		v, err := of.value(f.Value)
		if err != nil {
			return again("%s: %w", f.ID, err)
		}
		p.call.args[f.ID] = v
	}
	return a.complete(ctx, who, t, p.call)
}

// inputOf returns the schema of a tool's arguments. One that who is not offered has an empty one:
// the call decides.
func (a *server) inputOf(ctx context.Context, who agents.Principal, tool string) (*schema, error) {
	all, err := a.offered(ctx, who)
	if err != nil {
		return nil, err
	}
	in := new(schema)
	if i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == tool }); i >= 0 {
		err = json.Unmarshal(all[i].Input, in)
	}
	return in, err
}

// complete asks for the arguments that are missing, and makes the call when there are none.
func (a *server) complete(ctx context.Context, who agents.Principal, t *thread, c call) error {
	if c.tool == agents.OpCapture.Tool() {
		return device.Faultf(device.Invalid, "threads carry no pictures: ask for them by another protocol")
	}
	in, err := a.inputOf(ctx, who, c.tool)
	if err != nil {
		return err
	}
	if in.missing(c.args) {
		return a.form(t, pending{waits: forData, call: c}, c.tool, "This is needed for "+c.tool+".", in.fields(c.args))
	}
	t.calls++
	if c.terms.Key == nil {
		c.terms.Key = new(fmt.Sprintf("%s/%d", t.id, t.calls)) // so that a decision to ask again acts once
	}
	t.pending = pending{}
	return a.do(ctx, who, t, c)
}

const (
	optionAgain  = "again"
	optionCancel = "cancel"
)

// do makes a call. Where an owner has to approve it, the caller may only decide to ask again
// after that, or to leave it.
func (a *server) do(ctx context.Context, who agents.Principal, t *thread, c call) error {
	args, err := json.Marshal(c.args, json.Deterministic(true))
	if err != nil {
		return err
	}
	v, err := a.Tool(ctx, who, c.tool, args, c.terms)
	var needs *agents.ApprovalNeeded
	var none adapter.ErrNotFound
	switch {
	case errors.As(err, &needs):
		c.terms.Approval = needs.State
		return a.decide(t, pending{waits: forApproval, call: c}, answerMetadata{Fault: device.Unavailable, Approval: true}, "confirmation", "Waiting for the owner",
			needs.Says+". Nothing that is answered here approves it; ask again when the owner has.",
			[]decisionOption{{ID: optionAgain, Name: "The owner has approved it"}, {ID: optionCancel, Name: "Do not do it"}})
	case errors.As(err, &none):
		return device.Faultf(device.Invalid, "%s", none)
	case err != nil:
		return err
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	if len(text) > maxResult {
		t.add("assistant", answerMetadata{Actor: t.site}, fmt.Sprintf("It is done. Its result of %d bytes is too long for a thread: ask for fewer points or steps.", len(text)))
		return nil
	}
	t.add("assistant", answerMetadata{Actor: t.site}, string(text))
	if c.tool == tools.AskAgent && c.args["cancel"] == nil {
		return a.question(t, text)
	}
	return nil
}

// question passes a task's question on.
func (a *server) question(t *thread, result []byte) error {
	var is task.Task
	if err := json.Unmarshal(result, &is); err != nil || is.State != task.InputRequired || is.Question == nil {
		return err
	}
	p := pending{waits: forAnswer, task: is.ID, asks: is.Question.ID}
	if len(is.Question.Options) == 0 {
		return a.form(t, p, is.Agent, is.Question.Text, []formField{{ID: "answer", Type: "text", Required: true}})
	}
	var options []decisionOption
	for _, o := range is.Question.Options {
		options = append(options, decisionOption{ID: o})
	}
	return a.decide(t, p, answerMetadata{}, "radio", is.Agent, is.Question.Text, options)
}

// respond answers a task's question.
func (a *server) respond(ctx context.Context, who agents.Principal, t *thread, p pending, text string) error {
	c := call{tool: tools.AskAgent, args: make(map[string]jsontext.Value)}
	for name, text := range map[string]string{"task": p.task, "question": p.asks, "answer": text} {
		v, err := json.Marshal(text)
		if err != nil {
			return err
		}
		c.args[name] = v
	}
	return a.do(ctx, who, t, c)
}
