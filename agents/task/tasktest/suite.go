// Package tasktest has the test suite that every task.Host passes, and a host in memory.
package tasktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Helper is the agent that a host under test has. Work works on its tasks.
var Helper = task.Agent{Name: "helper", Description: "for tests", Skills: []task.Skill{
	{ID: "echo", Description: "returns its arguments", Input: jsontext.Value(`{"type":"object"}`)},
	{ID: "question", Description: "asks for a colour"},
	{ID: "fail", Description: "fails after a step"},
	{ID: "reject", Description: "does not do that"},
	{ID: "wait", Description: "waits until it is canceled"},
	{ID: "crash", Description: "ends by a defect"},
}}

// Work does what the skills of Helper say.
func Work(ctx context.Context, w task.Work) (jsontext.Value, error) {
	switch t := w.Task(); t.Skill {
	case "echo":
		w.Say("repeating")
		return w.Step(ctx, "repeats", func(context.Context, string) (any, error) { return t.Arguments, nil })
	case "question":
		colour, err := w.Input(ctx, task.Question{ID: "colour", Text: "Which colour?", Options: []string{"red", "green"}})
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"colour": colour})
	case "fail":
		return w.Step(ctx, "tries", func(context.Context, string) (any, error) {
			return nil, device.Faultf(device.Unsafe, "the tank is empty")
		})
	case "reject":
		return nil, device.Faultf(device.Invalid, "it does not do that")
	case "crash":
		return nil, errors.New("a defect")
	}
	w.Say("waiting")
	<-ctx.Done()
	return nil, ctx.Err()
}

// Who names a caller of the suite. Ann and Bob have the permission to ask Helper, Eve does not, and Olga is an owner.
type Who string

const (
	Ann  Who = "ann"
	Bob  Who = "bob"
	Eve  Who = "eve"
	Olga Who = "olga"
)

// Everybody lists all callers.
var Everybody = []Who{Ann, Bob, Eve, Olga}

// New returns a host in memory with Helper, whose principals have the names of Who as IDs. The
// end of the test closes it.
func New(t testing.TB) *Host {
	h := &Host{
		Agent: Helper, Work: Work,
		May:   func(p agents.Principal) bool { return p.ID != string(Eve) },
		Owner: func(p agents.Principal) bool { return p.ID == string(Olga) },
	}
	t.Cleanup(h.Close)
	return h
}

// As is a host as one caller has it.
type As struct {
	task.Host
	Self agents.Principal
}

// suite is one run of the tests.
type suite struct {
	*testing.T
	as map[Who]As
}

// Run tests a host. open returns it as each of Everybody has it.
func Run(t *testing.T, open func(t *testing.T) map[Who]As) {
	for name, test := range map[string]func(suite){
		"agents": suite.agents, "result": suite.result, "failures": suite.failures, "refusals": suite.refusals,
		"ownership": suite.ownership, "keys": suite.keys, "answers": suite.answers, "cancel": suite.cancel, "watch": suite.watch,
	} {
		t.Run(name, func(t *testing.T) { test(suite{t, open(t)}) })
	}
}

// ask asks for a task that is refused to nobody here.
func (s suite) ask(who Who, skill string) task.Task {
	s.Helper()
	t, err := s.as[who].Ask(s.Context(), s.as[who].Self, task.Request{Agent: Helper.Name, Skill: skill})
	if err != nil || t.ID == "" || t.Agent != Helper.Name || t.Skill != skill {
		s.Fatalf("%s is asked by %s: %+v, %v", skill, who, t, err)
	}
	return t
}

// until returns the task in the first state that the caller wants, all states being legal.
func (s suite) until(who Who, id string, wanted func(task.Task) bool) (last task.Task) {
	s.Helper()
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	err := s.as[who].Watch(ctx, s.as[who].Self, id, func(t task.Task) error {
		if last.State != "" && last.State != t.State && !reachable(last.State, t.State) {
			s.Errorf("%s follows %s", t.State, last.State)
		}
		if last = t; wanted(t) {
			return enough
		}
		return nil
	})
	if err != enough {
		s.Fatalf("the watch ended with %v at %+v", err, last)
	}
	return last
}

func ended(t task.Task) bool { return t.State.Ended() }

// reachable reports whether a state may follow another one, some between them unseen.
func reachable(from, to task.State) bool {
	return from.Before(to) || from == task.Submitted || !from.Ended() && task.Working.Before(to)
}

// refused checks the kind of an error.
func (s suite) refused(what string, err error, kinds ...device.FaultKind) {
	s.Helper()
	if err == nil {
		s.Errorf("%s is accepted", what)
		return
	}
	for _, k := range kinds {
		if device.AsFault(err).Kind == k {
			return
		}
	}
	s.Errorf("%s: %v (%s), want one of %v", what, err, device.AsFault(err).Kind, kinds)
}

func (s suite) agents() {
	for _, who := range Everybody {
		all, err := s.as[who].Agents(s.Context(), s.as[who].Self)
		if err != nil {
			s.Fatalf("%s: %v", who, err)
		}
		has := false
		for _, a := range all {
			if a.Name != Helper.Name {
				continue
			}
			has = true
			if len(a.Skills) != len(Helper.Skills) || a.Skills[0].ID != "echo" || string(a.Skills[0].Input) != string(Helper.Skills[0].Input) {
				s.Errorf("%s sees the skills %+v", who, a.Skills)
			}
		}
		if has != (who != Eve) {
			s.Errorf("%s sees %+v", who, all)
		}
	}
}

func (s suite) result() {
	a := s.as[Ann]
	asked, err := a.Ask(s.Context(), a.Self, task.Request{Agent: Helper.Name, Skill: "echo", Arguments: jsontext.Value(`{"n":[1,2.5,"x",null]}`)})
	if err != nil {
		s.Fatal(err)
	}
	s.until(Ann, asked.ID, ended)
	t, err := a.Task(s.Context(), a.Self, asked.ID)
	if err != nil || t.State != task.Completed || string(t.Result) != `{"n":[1,2.5,"x",null]}` || t.Created == "" || t.Changed == "" {
		s.Errorf("%+v %s, %v", t, t.Result, err)
	}
	if len(t.Steps) != 1 || t.Steps[0].Outcome != "done" || t.Steps[0].Does == "" {
		s.Errorf("steps %+v", t.Steps)
	}
	list, err := a.List(s.Context(), a.Self)
	if err != nil || len(list) != 1 || list[0].ID != asked.ID || list[0].State != task.Completed || list[0].Steps != nil {
		s.Errorf("list %+v, %v", list, err)
	}
}

func (s suite) failures() {
	for skill, want := range map[string]struct {
		state task.State
		fault device.FaultKind
	}{"fail": {task.Failed, device.Unsafe}, "reject": {task.Rejected, device.Invalid}, "crash": {task.Failed, device.Internal}} {
		t := s.until(Ann, s.ask(Ann, skill).ID, ended)
		if t.State != want.state || t.Fault != string(want.fault) || t.Says == "" {
			s.Errorf("%s: %+v", skill, t)
		}
	}
}

func (s suite) refusals() {
	_, err := s.as[Eve].Ask(s.Context(), s.as[Eve].Self, task.Request{Agent: Helper.Name, Skill: "echo"})
	s.refused("a stranger's task", err, device.Denied)
	a := s.as[Ann]
	for what, r := range map[string]task.Request{
		"an agent that is not there": {Agent: "nobody"}, "a skill that is not there": {Agent: Helper.Name, Skill: "fly"}, "no skill of many": {Agent: Helper.Name},
	} {
		_, err := a.Ask(s.Context(), a.Self, r)
		s.refused(what, err, device.Invalid, device.Denied)
	}
}

func (s suite) ownership() {
	id := s.ask(Ann, "wait").ID
	for _, who := range []Who{Bob, Eve} {
		b := s.as[who]
		for _, id := range []string{id, "nothing"} { // there is no telling which exist
			_, err := b.Task(s.Context(), b.Self, id)
			s.refused("another's task", err, device.Invalid)
			_, err = b.Cancel(s.Context(), b.Self, id)
			s.refused("another's cancel", err, device.Invalid)
			_, err = b.Answer(s.Context(), b.Self, id, "colour", "red")
			s.refused("another's answer", err, device.Invalid)
			s.refused("another's watch", b.Watch(s.Context(), b.Self, id, func(task.Task) error { return nil }), device.Invalid)
		}
		if list, err := b.List(s.Context(), b.Self); err != nil || len(list) != 0 {
			s.Errorf("%s lists %+v, %v", who, list, err)
		}
	}
	o := s.as[Olga]
	if t, err := o.Task(s.Context(), o.Self, id); err != nil || t.ID != id || t.Asker == "" {
		s.Errorf("an owner sees %+v, %v", t, err)
	}
	if list, err := o.List(s.Context(), o.Self); err != nil || len(list) != 1 {
		s.Errorf("an owner lists %+v, %v", list, err)
	}
	if t, err := o.Cancel(s.Context(), o.Self, id); err != nil || t.State != task.Canceled {
		s.Errorf("an owner cancels: %+v, %v", t, err)
	}
}

func (s suite) keys() {
	r := task.Request{Agent: Helper.Name, Skill: "echo", Arguments: jsontext.Value(`{"a":1}`)}
	r.Key = new("k1")
	a, b := s.as[Ann], s.as[Bob]
	first, err := a.Ask(s.Context(), a.Self, r)
	if err != nil {
		s.Fatal(err)
	}
	again, err := a.Ask(s.Context(), a.Self, r)
	if err != nil || again.ID != first.ID {
		s.Errorf("the same key: %+v, %v", again, err)
	}
	s.until(Ann, first.ID, ended)
	if again, err = a.Ask(s.Context(), a.Self, r); err != nil || again.ID != first.ID {
		s.Errorf("the same key after the end: %+v, %v", again, err)
	}
	if other, err := b.Ask(s.Context(), b.Self, r); err != nil || other.ID == first.ID {
		s.Errorf("another caller's key: %+v, %v", other, err)
	}
	r.Arguments = jsontext.Value(`{"a":2}`)
	_, err = a.Ask(s.Context(), a.Self, r)
	s.refused("another request with the same key", err, device.Invalid)
}

func (s suite) answers() {
	a := s.as[Ann]
	id := s.ask(Ann, "question").ID
	t := s.until(Ann, id, func(t task.Task) bool { return t.State == task.InputRequired })
	if t.Question == nil || t.Question.ID == "" || t.Question.Text != "Which colour?" || len(t.Question.Options) != 2 {
		s.Fatalf("question %+v", t.Question)
	}
	_, err := a.Answer(s.Context(), a.Self, id, "another", "red")
	s.refused("the answer to another question", err, device.Invalid)
	_, err = a.Answer(s.Context(), a.Self, id, t.Question.ID, "blue")
	s.refused("an answer that there is not", err, device.Invalid)
	if _, err := a.Answer(s.Context(), a.Self, id, t.Question.ID, "green"); err != nil {
		s.Fatal(err)
	}
	if t := s.until(Ann, id, ended); t.State != task.Completed || string(t.Result) != `{"colour":"green"}` || t.Question != nil {
		s.Errorf("%+v %s", t, t.Result)
	}
	_, err = a.Answer(s.Context(), a.Self, id, t.Question.ID, "red")
	s.refused("a second answer", err, device.Invalid)
}

func (s suite) cancel() {
	a := s.as[Ann]
	for _, skill := range []string{"wait", "question"} {
		id := s.ask(Ann, skill).ID
		s.until(Ann, id, func(t task.Task) bool { return t.Says != "" || t.State == task.InputRequired })
		for range 2 {
			if t, err := a.Cancel(s.Context(), a.Self, id); err != nil || t.State != task.Canceled {
				s.Errorf("%s: %+v, %v", skill, t, err)
			}
		}
		if t := s.until(Ann, id, ended); t.State != task.Canceled {
			s.Errorf("%s: %+v", skill, t)
		}
	}
	id := s.ask(Ann, "echo").ID
	s.until(Ann, id, ended)
	if t, err := a.Cancel(s.Context(), a.Self, id); err != nil || t.State != task.Completed {
		s.Errorf("what has ended stays so: %+v, %v", t, err)
	}
}

func (s suite) watch() {
	a := s.as[Ann]
	id := s.ask(Ann, "question").ID
	var last task.Task
	err := a.Watch(s.Context(), a.Self, id, func(t task.Task) error {
		if last = t; t.State == task.InputRequired {
			_, err := a.Answer(s.Context(), a.Self, id, t.Question.ID, "red")
			return err
		}
		return nil
	})
	if err != nil || last.State != task.Completed {
		s.Errorf("a watch ends with its task: %v at %+v", err, last)
	}
	gone, cancel := context.WithCancel(s.Context())
	id = s.ask(Ann, "wait").ID
	err = a.Watch(gone, a.Self, id, func(task.Task) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		s.Errorf("a watch whose watcher left: %v", err)
	}
	if t, err := a.Cancel(s.Context(), a.Self, id); err != nil || t.State != task.Canceled {
		s.Errorf("%+v, %v", t, err)
	}
}
