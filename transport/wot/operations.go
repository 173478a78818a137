package wot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readable returns the points of a device that the caller may read, and that are no events.
func (c catalog) readable(thing string) (all []string) {
	for _, address := range c.Read {
		if of, _, _ := device.SplitAddress(address); of == thing && c.kind(address) != device.KindEvent {
			all = append(all, address)
		}
	}
	return all
}

// readProperty returns the value of a property, and the reading that it is of.
func (s server) readProperty(ctx context.Context, who agents.Principal, of subject, name string) (any, agents.Reading, error) {
	if of.kind == sitePrefix && of.name == s.Name && name == "status" {
		all, err := s.Node.Status(ctx, who, agents.SiteRequest{})
		if err != nil {
			return nil, agents.Reading{}, err
		}
		return all.Sites[0], agents.Reading{}, nil
	}
	address, err := addressOf(of, name)
	if err != nil {
		return nil, agents.Reading{}, err
	}
	got, err := s.Node.Read(ctx, who, agents.ReadRequest{Points: []string{address}})
	if err != nil {
		return nil, agents.Reading{}, s.notFound(ctx, who, address, err)
	}
	r := got.Readings[0]
	if !isKnown(r) {
		return nil, r, notKnown(r)
	}
	return r.Value, r, nil
}

// isKnown reports whether a reading has a value that holds now: a consumer sees no quality
// beside the value of a property.
func isKnown(r agents.Reading) bool { return r.Quality == device.Good && !r.Value.IsZero() }

func notKnown(r agents.Reading) error {
	return device.Faultf(device.Unavailable, "%s has no good reading: %s", r.Point, cmp.Or(r.Why, string(r.Quality)))
}

// readProperties returns those of a device that have good readings.
func (s server) readProperties(ctx context.Context, who agents.Principal, of subject) (map[string]any, error) {
	all := make(map[string]any)
	if of.kind == sitePrefix {
		v, _, err := s.readProperty(ctx, who, of, "status")
		all["status"] = v
		return all, err
	}
	have, err := s.catalog(ctx, who)
	if err != nil {
		return nil, err
	}
	points := have.readable(of.name)
	if of.kind != "" || len(points) == 0 {
		return nil, notThere("such thing with properties")
	}
	got, err := s.Node.Read(ctx, who, agents.ReadRequest{Points: points})
	for _, r := range got.Readings {
		if _, name, _ := device.SplitAddress(r.Point); isKnown(r) {
			all[name] = r.Value
		}
	}
	return all, err
}

// writeProperty moves an output, and holds it for a time: seconds, or as long as the output's
// own default where nil.
func (s server) writeProperty(ctx context.Context, who agents.Principal, of subject, name string, value jsontext.Value, seconds *float64, terms agents.Terms) (agents.Output, error) {
	address, err := addressOf(of, name)
	if err != nil {
		return agents.Output{}, err
	}
	var v device.Value
	if len(value) > 0 {
		if err := json.Unmarshal(value, &v); err != nil {
			return agents.Output{}, device.Faultf(device.Invalid, "the value of a property is a number, true or false")
		}
	}
	if v.IsZero() {
		return agents.Output{}, device.Faultf(device.Invalid, "the value is missing; invoke %s%s to return it to safe", releaseAction, name)
	}
	out, err := s.Node.Move(ctx, who, agents.MoveRequest{Output: address, Value: v, For: seconds, Terms: terms})
	return out, s.notFound(ctx, who, address, err)
}

// picture is the output of capture.
type picture struct {
	Time string `json:"time"`
	MIME string `json:"mime_type"`
	Data []byte `json:"data"`
}

// invokeAction invokes an action. It returns the output; nil where there is none, and a task.Task
// of an agent.
func (s server) invokeAction(ctx context.Context, who agents.Principal, of subject, name string, input jsontext.Value, wait time.Duration, terms agents.Terms) (any, error) {
	switch {
	case of.kind == agentPrefix:
		return s.ask(ctx, who, of.name, name, input, wait, terms)
	case of.kind == sitePrefix && of.name == s.Name:
		return s.invokeSite(ctx, who, name, input, terms)
	}
	does, point, _ := strings.Cut(name, ".")
	address, err := addressOf(of, point)
	if err != nil {
		return nil, err
	}
	out, err := s.invokePoint(ctx, who, does+".", address, input, terms)
	return out, s.notFound(ctx, who, address, err)
}

// siteActions are the actions of the site.
var siteActions = map[string]*op.Operation{"stop": op.Stop, "history": op.History}

// invokeSite invokes an action of the site. No input keeps a stop from stopping.
func (s server) invokeSite(ctx context.Context, who agents.Principal, name string, input jsontext.Value, terms agents.Terms) (any, error) {
	does := siteActions[name]
	switch does {
	case nil:
		return nil, notThere("such action")
	case op.Stop:
		input = nil
	}
	r, err := does.Decode(inputReader(input))
	if err != nil {
		return nil, err
	}
	return does.AskOne(ctx, s.Node, who, r, terms)
}

// inputReader is the input of an action, which may be missing.
type inputReader jsontext.Value

// Decode decodes the input.
func (in inputReader) Decode(into any) error {
	if len(in) == 0 {
		return nil
	}
	raw, err := rpc.ParseJSON(in)
	if err == nil {
		err = raw.DecodeStrict(into)
	}
	if err != nil {
		return device.Faultf(device.Invalid, "the input: %w", err)
	}
	return nil
}

// invokePoint invokes an action of a point.
func (s server) invokePoint(ctx context.Context, who agents.Principal, does, address string, input jsontext.Value, terms agents.Terms) (any, error) {
	switch does {
	case releaseAction:
		_, err := s.Node.Move(ctx, who, agents.MoveRequest{Output: address, Terms: terms})
		return nil, err
	case showAction:
		var text string
		if len(input) == 0 || json.Unmarshal(input, &text) != nil {
			return nil, device.Faultf(device.Invalid, "the input of %s… is a text", does)
		}
		return nil, s.Node.Show(ctx, who, agents.ShowRequest{Display: address, Text: text, Terms: terms})
	case captureAction:
		p, err := s.Node.Capture(ctx, who, agents.CaptureRequest{Camera: address, Terms: terms})
		if err != nil {
			return nil, err
		}
		return picture{p.Time, p.MIME, p.Data}, nil
	}
	return nil, notThere("such action")
}

// maxWait bounds how long one request waits for a task: clients give up after half a minute.
const maxWait = 25 * time.Second

// ask asks an agent for a task, and waits for its end, but not longer than wait.
func (s server) ask(ctx context.Context, who agents.Principal, agent, skill string, input jsontext.Value, wait time.Duration, terms agents.Terms) (any, error) {
	if s.Tasks == nil {
		return nil, notThere("such agent")
	}
	all, err := s.Tasks.Agents(ctx, who)
	if err != nil {
		return nil, err
	}
	a, known := catalog{agents: all}.agent(agent)
	if !known {
		return nil, notThere("such agent")
	}
	if skill == answerAction {
		return s.answer(ctx, who, agent, input)
	}
	chat := skill == chatAction && chats(a)
	if chat {
		skill = task.TalkSkill
	}
	if !hasSkill(a, skill) {
		return nil, notThere("such skill")
	}
	r := task.Request{Agent: agent, Skill: skill, Terms: terms}
	switch input.Kind() {
	case '{':
		if chat {
			if err := readChat(input, &r); err != nil {
				return nil, err
			}
			break
		}
		r.Arguments = input.Clone()
	case '"':
		if err := json.Unmarshal(input, &r.Text); err != nil {
			return nil, device.Faultf(device.Invalid, "the input: %w", err)
		}
	default:
		if len(input) > 0 {
			return nil, device.Faultf(device.Invalid, "the input of a skill is an object with its arguments, or a text")
		}
	}
	place, err := s.Node.Hold(who, node.Waits)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	t, err := s.Tasks.Ask(ctx, who, r)
	if err != nil {
		return nil, err
	}
	t, err = s.Wait(ctx, who, t, wait)
	t.Steps = nil
	return t, err
}

func hasSkill(a task.Agent, id string) bool {
	return slices.ContainsFunc(a.Skills, func(s task.Skill) bool { return s.ID == id })
}

// task returns a task of an agent's skill.
func (s server) task(ctx context.Context, who agents.Principal, of subject, skill, id string) (task.Task, error) {
	if s.Tasks == nil || of.kind != agentPrefix {
		return task.Task{}, notThere("such task")
	}
	t, err := s.Tasks.Task(ctx, who, id)
	if err == nil && (t.Agent != of.name || skill != answerAction && t.Skill != skill && !(skill == chatAction && t.Skill == task.TalkSkill)) {
		err = notThere("such task")
	}
	t.Steps = nil
	return t, err
}

// answer answers a task's question.
func (s server) answer(ctx context.Context, who agents.Principal, agent string, input jsontext.Value) (any, error) {
	var in struct {
		Task     string `json:"task"`
		Question string `json:"question"`
		Answer   string `json:"answer"`
	}
	if err := inputReader(input).Decode(&in); err != nil {
		return nil, err
	}
	t, err := s.task(ctx, who, subject{agentPrefix, agent}, answerAction, in.Task)
	if err != nil {
		return nil, err
	}
	t, err = task.AnswerQuestion(ctx, s.Tasks, who, t.ID, in.Question, in.Answer)
	t.Steps = nil
	return t, err
}
