package tasks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of entries.
const (
	kindAsked    = "asked"    // the first: the request and its caller
	kindState    = "state"    // the task works, or has ended
	kindIntent   = "intent"   // a step before it is made
	kindResult   = "result"   // what came of a step
	kindApproval = "approval" // the step begun last was not made: it waits for an owner
	kindQuestion = "question"
	kindAnswer   = "answer"
	kindFar      = "far" // the step begun last asks another site
)

// entry is an entry of a task's file.
type entry struct {
	Kind string `cbor:"1,keyasint"`
	At   int64  `cbor:"2,keyasint"`            // by the site's clock, ms since 1970; it may have been wrong
	Sure bool   `cbor:"15,keyasint,omitempty"` // At was known
	Left int64  `cbor:"3,keyasint,omitempty"`  // how long until the task's end, in ms; whatever the clock does
	// Of asked.
	ID         string   `cbor:"4,keyasint,omitempty"`
	Agent      string   `cbor:"5,keyasint,omitempty"`
	Skill      string   `cbor:"6,keyasint,omitempty"`
	Text       string   `cbor:"7,keyasint,omitempty"` // also of a question or an answer
	Arguments  []byte   `cbor:"8,keyasint,omitempty"`
	Asker      string   `cbor:"9,keyasint,omitempty"` // also the principal that answered
	Owner      bool     `cbor:"10,keyasint,omitempty"`
	Account    string   `cbor:"11,keyasint,omitempty"`
	Via        []string `cbor:"12,keyasint,omitempty"`
	Definition []byte   `cbor:"13,keyasint,omitempty"` // the digest of the agent's
	Request    []byte   `cbor:"14,keyasint,omitempty"` // the digest of what was asked
	Order      int64    `cbor:"23,keyasint,omitempty"` // of live tasks: the clock may be set back
	Context    string   `cbor:"26,keyasint,omitempty"`
	Key        string   `cbor:"27,keyasint,omitempty"` // the idempotency key
	// Of state and result.
	State  string `cbor:"16,keyasint,omitempty"`
	Fault  string `cbor:"17,keyasint,omitempty"` // of a result its outcome
	Says   string `cbor:"18,keyasint,omitempty"` // also what a step does, and what an owner is asked
	Result []byte `cbor:"19,keyasint,omitempty"` // JSON
	// Of intent, result and approval: from 1.
	Step int `cbor:"20,keyasint,omitempty"`
	// Of intent: the operation, "" for any other work; of a move the output, its value as JSON, none for
	// a return to safe, and the length in ms.
	Output string `cbor:"24,keyasint,omitempty"`
	Op     string `cbor:"28,keyasint,omitempty"`
	Value  []byte `cbor:"29,keyasint,omitempty"`
	For    int64  `cbor:"30,keyasint,omitempty"`
	// Of far: SITE, SITE/ before that is asked, and SITE/ID once its task is known.
	Far string `cbor:"25,keyasint,omitempty"`
	// Of question and answer.
	Question string   `cbor:"21,keyasint,omitempty"`
	Options  []string `cbor:"22,keyasint,omitempty"`
}

// record is a task as its entries say.
type record struct {
	asked    entry
	state    task.State
	changed  int64 // At of the last entry
	sure     bool  // and Sure
	left     int64 // Left of the last entry that has one
	fault    string
	says     string
	result   jsontext.Value
	steps    []task.Step
	stepLeft []int64 // Left of the last entry of each step
	question *task.Question
	answers  map[string]string // by question
	said     []task.Exchange
	moved    []string // outputs that its steps may have moved, and that were not released since
	far      string   // of the open step, as in entry
}

// apply adds an entry. Only apply changes the state; an entry that may not follow is damage.
func (r *record) apply(e *entry) error {
	if err := r.check(e); err != nil {
		return fmt.Errorf("%w: %v", errDamaged, err)
	}
	r.changed, r.sure = e.At, e.Sure
	if e.Left > 0 {
		r.left = e.Left
	}
	switch e.Kind {
	case kindAsked:
		r.asked, r.state = *e, task.Submitted
	case kindState:
		if r.state == task.AuthRequired { // the step was not made
			r.dropStep()
		}
		r.state, r.question = task.State(e.State), nil
		r.fault, r.says, r.result = e.Fault, e.Says, e.Result
	case kindIntent:
		approved := r.state == task.AuthRequired
		if approved {
			r.state, r.question = task.Working, nil
			r.dropStep()
		}
		r.stepLeft = append(r.stepLeft, r.left)
		s := e.step()
		s.Approved = approved
		r.steps = append(r.steps, s)
		if !s.Value.IsZero() && !slices.Contains(r.moved, s.Output) {
			r.moved = append(r.moved, s.Output)
		}
	case kindResult:
		s := &r.steps[e.Step-1]
		s.Outcome, s.Says, s.Result = e.Fault, e.Says, e.Result
		r.stepLeft[e.Step-1] = r.left
		r.far = ""
	case kindFar:
		r.far = e.Far
	case kindApproval:
		r.state, r.question, r.far = task.AuthRequired, &task.Question{ID: e.Question, Text: e.Says}, ""
	case kindQuestion:
		r.state, r.question = task.InputRequired, &task.Question{ID: e.Question, Text: e.Text, Options: e.Options}
		r.said = append(r.said, task.Exchange{Question: *r.question})
	case kindAnswer:
		if r.answers == nil {
			r.answers = make(map[string]string)
		}
		r.state, r.question, r.answers[e.Question] = task.Working, nil, e.Text
		r.said[len(r.said)-1].Answer = e.Text
	}
	return nil
}

// opNames are the operations of steps in files.
var opNames = map[agents.Operation]string{agents.OpMove: "move", agents.OpStop: "stop",
	agents.OpShow: "show", agents.OpCapture: "capture", agents.OpAsk: "ask"}

// intentOf returns the entry of a step before it is made.
func intentOf(n int, s task.Step) entry {
	e := entry{Kind: kindIntent, Step: n, Says: clip(s.Does), Output: s.Output,
		Op: opNames[s.Op], For: s.For.Milliseconds()}
	if !s.Value.IsZero() {
		e.Value, _ = json.Marshal(s.Value.Any())
	}
	return e
}

// step reverses intentOf.
func (e *entry) step() task.Step {
	s := task.Step{Does: e.Says, Time: stamp(e.At), Output: e.Output, For: time.Duration(e.For) * time.Millisecond}
	for op, name := range opNames {
		if name == e.Op {
			s.Op = op
		}
	}
	var v any
	if len(e.Value) > 0 && json.Unmarshal(e.Value, &v) == nil {
		switch v := v.(type) {
		case float64:
			s.Value = device.Number(v)
		case bool:
			s.Value = device.Bool(v)
		case string:
			s.Value = device.Text(v)
		}
	}
	return s
}

// dropStep takes back the last step, which was not made.
func (r *record) dropStep() {
	n := len(r.steps) - 1
	r.steps, r.stepLeft = r.steps[:n], r.stepLeft[:n]
}

// check refuses an entry that may not follow.
func (r *record) check(e *entry) error {
	for _, text := range []jsontext.Value{e.Result, e.Arguments} {
		if text != nil && !text.IsValid() {
			return fmt.Errorf("what should be JSON is not")
		}
	}
	var to task.State
	switch e.Kind {
	case kindAsked:
		if r.state != "" || !isID(e.ID) || e.Asker == "" || device.CheckName(e.Agent) != nil {
			return fmt.Errorf("it is not asked for once")
		}
		return nil
	case kindState:
		to = task.State(e.State)
		if !to.Ended() && to != task.Working {
			return fmt.Errorf("%.20q is no state of its own", e.State)
		}
		if to == task.Completed && r.openStep() {
			return fmt.Errorf("it was completed within a step")
		}
	case kindIntent:
		switch {
		case r.state == task.AuthRequired && e.Step == len(r.steps):
			return nil
		case r.state != task.Working || e.Step != len(r.steps)+1 || r.openStep() || e.Step > maxSteps:
			return fmt.Errorf("step %d cannot follow", e.Step)
		case e.Op == "" && e.Output != "":
			return fmt.Errorf("step %d is in a form that no released version wrote", e.Step)
		}
		return nil
	case kindResult:
		if r.state != task.Working || e.Step != len(r.steps) || !r.openStep() || e.Fault == "" {
			return fmt.Errorf("step %d has no result here", e.Step)
		}
		return nil
	case kindFar:
		site, id, _ := strings.Cut(e.Far, "/")
		if r.state != task.Working || e.Step != len(r.steps) || !r.openStep() || !strings.HasPrefix(e.Far, r.far) || device.CheckName(site) != nil || len(id) > maxName {
			return fmt.Errorf("step %d asks no other site here", e.Step)
		}
		return nil
	case kindApproval:
		if to = task.AuthRequired; e.Step != len(r.steps) || !r.openStep() || strings.Contains(r.far, "/") {
			return fmt.Errorf("step %d waits for nothing", e.Step)
		}
	case kindQuestion:
		if to = task.InputRequired; r.openStep() || e.Question == "" {
			return fmt.Errorf("nothing can be asked within a step")
		}
	case kindAnswer:
		if to = task.Working; r.state != task.InputRequired || r.question.ID != e.Question {
			return fmt.Errorf("nobody asked question %.20q", e.Question)
		}
	default:
		return fmt.Errorf("%.20q is no kind of entry", e.Kind)
	}
	if !r.state.Before(to) {
		return fmt.Errorf("%s cannot become %s", r.state, to)
	}
	return nil
}

// openStep reports whether a step was begun and has no result.
func (r *record) openStep() bool {
	return len(r.steps) > 0 && r.steps[len(r.steps)-1].Outcome == ""
}

// asker returns the principal that asked for the task.
func (r *record) asker() agents.Principal {
	p := principal.Parse(r.asked.Asker)
	p.Owner = r.asked.Owner
	return p
}

// head returns the task for a list.
func (r *record) head() task.Task {
	return task.Task{
		ID: r.asked.ID, Agent: r.asked.Agent, Skill: r.asked.Skill, State: r.state, Says: r.says, Fault: r.fault, Asker: r.asked.Asker, Context: r.asked.Context,
		Created: stamp(r.asked.At), Changed: stamp(r.changed), Question: r.question,
	}
}

// whole returns the task with everything.
func (r *record) whole() task.Task {
	t := r.head()
	t.Text, t.Arguments, t.Result, t.Steps = r.asked.Text, r.asked.Arguments, r.result, slices.Clone(r.steps)
	t.Key, t.Exchanges = r.asked.Key, slices.Clone(r.said)
	return t
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }
