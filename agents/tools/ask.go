package tools

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AskAgent is the tool that asks an agent for a task, and that tells and changes how tasks are.
var AskAgent = agents.OpAsk.Tool()

const (
	// maxWait bounds how long one call waits for its task: clients give up after half a minute.
	maxWait = 25 * time.Second
	// maxListed bounds the tasks of a list, which models read.
	maxListed = 50
)

// askArgs are the arguments of AskAgent: a new task of Agent, or an existing Task.
type askArgs struct {
	Agent     string         `json:"agent,omitzero"`
	Skill     string         `json:"skill,omitzero" jsonschema:"if it has several"`
	Text      string         `json:"text,omitzero" jsonschema:"what is wanted, for agents that read"`
	Arguments jsontext.Value `json:"arguments,omitzero" jsonschema:"of the skill"`
	Context   string         `json:"context,omitzero" jsonschema:"of your choice: an agent that talks knows the earlier tasks with the same"`
	Within    *float64       `json:"within,omitzero" jsonschema:"seconds until it fails; 3600 when left out"`
	Wait      *float64       `json:"wait_seconds,omitzero" jsonschema:"for its end; 25 when left out"`

	Task     string  `json:"task,omitzero" jsonschema:"ID of one asked before, instead of agent"`
	Answer   *string `json:"answer,omitzero" jsonschema:"to its question"`
	Question string  `json:"question,omitzero" jsonschema:"ID; the current when left out"`
	Cancel   bool    `json:"cancel,omitzero"`
}

// askResult answers AskAgent about one task.
type askResult struct {
	task.Task
	Next string `json:"next,omitzero"` // what its caller may do now
}

// Asked is the answer to an AskAgent that names neither an agent nor a task.
type Asked struct {
	Agents []task.Agent `json:"agents"`
	Tasks  []task.Task  `json:"tasks"`         // the newest first
	More   int          `json:"more,omitzero"` // older ones, which are left out
}

// OfAsk returns the arguments of AskAgent for a new task.
func OfAsk(r task.Request) any {
	return askArgs{Agent: r.Agent, Skill: r.Skill, Text: r.Text, Arguments: r.Arguments, Context: r.Context, Within: r.Seconds}
}

// askTool returns the tool where p may ask an agent, and it as a wish where p may ask an owner for that.
func (c *Catalog) askTool(ctx context.Context, p agents.Principal) (tool, wish []Tool, err error) {
	if c.Tasks == nil {
		return nil, nil, nil
	}
	all, err := c.Tasks.Agents(ctx, p)
	if err != nil || len(all) == 0 && (c.WishAsk == nil || !c.WishAsk(p)) {
		return nil, nil, err
	}
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.Name
	}
	in, err := inputSchema(reflect.TypeFor[askArgs](), "agent", names)
	if err != nil {
		return nil, nil, err
	}
	t := Tool{
		Name: AskAgent,
		Description: "Ask an agent for a piece of work, a task. It waits for the end; of what takes longer it returns the task's ID, to call again with. " +
			"Without arguments: the agents with their skills, and your tasks.",
		Input: in, Output: []byte(`{"type":"object"}`), Hints: Hints{Destructive: true},
	}
	if len(all) == 0 {
		return nil, []Tool{wished(t)}, nil
	}
	return []Tool{t}, nil, nil
}

// ask calls AskAgent.
func (c *Catalog) ask(ctx context.Context, p agents.Principal, call Call) (Result, error) {
	var in askArgs
	if err := call.Args.Decode(&in); err != nil {
		return Result{}, invalid("%s: %w", AskAgent, err)
	}
	if err := in.check(); err != nil {
		return Result{}, &malformed{err}
	}
	if c.Hold != nil && !in.Cancel { // a call that releases outputs waits for no slot
		leave, err := c.Hold(p)
		if err != nil {
			return Result{}, c.hosted.Refuse(p, AskAgent, err)
		}
		defer leave()
	}
	if in.Agent == "" && in.Task == "" {
		return c.listTasks(ctx, p)
	}
	t, fresh, err := c.change(ctx, p, in, call)
	if err != nil {
		return Result{}, err
	}
	if fresh && call.Exchange.Can.Tasks {
		return Result{Task: &t}, nil
	}
	wait := maxWait
	if in.Wait != nil {
		wait = time.Duration(*in.Wait * float64(time.Second))
	}
	if t, err = c.wait(ctx, p, t, wait, call.Note); err != nil {
		return Result{}, err
	}
	if t.State == task.InputRequired && call.Exchange.Can.Elicitation && in.Task == "" {
		return Result{NeedInput: &NeedInput{Questions: []Question{Elicit(*t.Question)}, State: t.ID + " " + t.Question.ID}}, nil
	}
	if in.Task == "" && t.State.Ended() {
		return OutcomeOf(t)
	}
	return Result{Value: brief(t)}, nil
}

// check refuses arguments that contradict each other.
func (in askArgs) check() error {
	if err := errors.Join(agents.CheckNumber("wait_seconds", in.Wait), agents.CheckNumber("within", in.Within)); err != nil {
		return err
	}
	switch {
	case in.Agent != "" && in.Task != "":
		return device.Faultf(device.Invalid, "give agent, to ask for a new task, or task, for one that there is; not both")
	case in.Agent == "" && (in.Skill != "" || in.Text != "" || in.Arguments != nil || in.Context != "" || in.Within != nil):
		return device.Faultf(device.Invalid, "agent is missing: skill, text, arguments, context and within are those of a new task")
	case in.Task == "" && (in.Answer != nil || in.Question != "" || in.Cancel):
		return device.Faultf(device.Invalid, "task is missing: answer, question and cancel are about a task that there is")
	case in.Cancel && in.Answer != nil:
		return device.Faultf(device.Invalid, "give answer or cancel, not both")
	}
	return nil
}

// change makes, answers, cancels or finds a task; fresh reports that the call made it.
func (c *Catalog) change(ctx context.Context, p agents.Principal, in askArgs, call Call) (t task.Task, fresh bool, err error) {
	id, question, asked := strings.Cut(call.Exchange.State, " ")
	switch {
	case asked && in.Task == "":
		t, err = Respond(ctx, c.Tasks, p, id, question, call.Exchange.Answers[question])
	case in.Task == "":
		terms := call.Terms
		terms.Approval = call.Exchange.State // of a call that an owner has to approve
		t, err = c.Tasks.Ask(ctx, p, task.Request{
			Agent: in.Agent, Skill: in.Skill, Text: in.Text, Arguments: in.Arguments, Context: in.Context, Seconds: in.Within, Terms: terms,
		})
		return t, true, err
	case in.Cancel:
		t, err = c.Tasks.Cancel(ctx, p, in.Task)
	case in.Answer != nil:
		t, err = task.AnswerQuestion(ctx, c.Tasks, p, in.Task, in.Question, *in.Answer)
	default:
		t, err = c.Tasks.Task(ctx, p, in.Task)
	}
	return t, false, err
}

// wait returns the task as it is when it has ended, when it asks its asker, or after d.
func (c *Catalog) wait(ctx context.Context, p agents.Principal, t task.Task, d time.Duration, note func(Note)) (task.Task, error) {
	if d <= 0 || t.Settled() {
		return t, nil
	}
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	told := 0
	// However the watch ends, the task goes on, and its caller has to know its ID.
	_ = task.WatchUntil(waiting, c.Tasks, p, t.ID, func(now task.Task) (bool, error) {
		if now.Says != t.Says && now.Says != "" {
			note(Note{Progress: float64(told), Message: now.Says})
			told++
		}
		t = now
		return t.Settled(), nil
	})
	return t, ctx.Err()
}

func (c *Catalog) listTasks(ctx context.Context, p agents.Principal) (Result, error) {
	all, err := c.Tasks.Agents(ctx, p)
	if err != nil {
		return Result{}, err
	}
	list, err := c.Tasks.List(ctx, p)
	if err != nil {
		return Result{}, err
	}
	list, more := task.Cut(list, maxListed)
	out := Asked{Agents: all, Tasks: make([]task.Task, 0, len(list)), More: more}
	for _, t := range list {
		t.Result, t.Steps, t.Text, t.Arguments = nil, nil, "", nil
		out.Tasks = append(out.Tasks, t)
	}
	return Result{Value: out}, nil
}

// brief returns a task as models see it.
func brief(t task.Task) askResult {
	t.Steps, t.Text, t.Arguments, t.Asker = nil, "", nil, ""
	again := "call ask_agent again with task: " + t.ID
	switch t.State {
	case task.Submitted, task.Working:
		return askResult{t, "It goes on. To wait for its end, " + again + "."}
	case task.InputRequired:
		return askResult{t, "It waits for an answer: " + again + " and answer."}
	case task.AuthRequired:
		return askResult{t, "An owner has to approve it elsewhere; no answer does. Then " + again + "."}
	}
	return askResult{Task: t}
}

// OutcomeOf is the result of the call that asked for a task which has ended: a fault where
// the task failed or was rejected.
func OutcomeOf(t task.Task) (Result, error) {
	switch t.State {
	case task.Failed, task.Rejected:
		kind := device.FaultKind(t.Fault)
		if kind == "" {
			kind = device.Invalid
		}
		return Result{}, &device.Fault{Kind: kind, Msg: fmt.Sprintf("task %s %s: %s", t.ID, t.State, t.Says)}
	}
	return Result{Value: brief(t)}, nil
}

// answerField is the field of the form that Elicit makes.
const answerField = "answer"

// Elicit is a task's question as a form for the person behind a client.
func Elicit(q task.Question) Question {
	field := map[string]any{"type": "string", "title": "Answer"}
	if len(q.Options) > 0 {
		field["enum"] = q.Options
	}
	return Question{Key: q.ID, Method: "elicitation/create", Params: map[string]any{
		"mode": "form", "message": q.Text,
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{answerField: field}, "required": []string{answerField}},
	}}
}

// Respond handles a person's answer to the form of Elicit. To decline cancels the task, and to
// dismiss it leaves the task waiting. A client that names the only field otherwise is understood.
func Respond(ctx context.Context, h task.Host, p agents.Principal, id, question string, response Args) (task.Task, error) {
	if response == nil {
		return h.Task(ctx, p, id)
	}
	action, answer, err := formOf(response)
	switch {
	case err != nil:
		return task.Task{}, err
	case action == "decline":
		return h.Cancel(ctx, p, id)
	case action == "cancel":
		return h.Task(ctx, p, id)
	}
	return h.Answer(ctx, p, id, question, answer)
}

// formOf decodes a filled form, and returns the only value of an accepted one as text.
func formOf(response Args) (action, answer string, err error) {
	var form struct {
		Action  string                    `json:"action"`
		Content map[string]jsontext.Value `json:"content"`
	}
	if err := response.Decode(&form); err != nil {
		return "", "", device.Faultf(device.Invalid, "the answer is no form: %w", err)
	}
	if form.Action == "decline" || form.Action == "cancel" {
		return form.Action, "", nil
	}
	value, named := form.Content[answerField]
	if !named && len(form.Content) == 1 {
		for _, value = range form.Content {
			named = true
		}
	}
	if form.Action != "accept" || !named {
		return "", "", device.Faultf(device.Invalid, "the answer needs the action accept, decline or cancel, and with accept a content with %q", answerField)
	}
	switch value.Kind() {
	case '"':
		err = json.Unmarshal(value, &answer)
		return "accept", answer, err
	case 't', 'f', '0':
		return "accept", string(value), nil
	}
	return "", "", device.Faultf(device.Invalid, "%s must be a text", answerField)
}
