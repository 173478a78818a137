// Package task is the vocabulary of tasks: pieces of work that are asked of the agents of a site.
// States are those of A2A 1.0 (Task.status.state).
package task

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAsks bounds the questions of a task, MaxLive the tasks of a site that have not ended, and MaxTime
// how long one is worked on.
const (
	MaxAsks = 16
	MaxLive = 64
	MaxTime = 24 * time.Hour
)

// State is the state of a task.
type State string

const (
	Submitted     State = "submitted"      // durable; its agent has not begun
	Working       State = "working"        // its agent works on it
	InputRequired State = "input_required" // it waits for an answer to Question
	AuthRequired  State = "auth_required"  // it waits for an owner, in a channel of the owner's own
	Completed     State = "completed"
	Failed        State = "failed"
	Rejected      State = "rejected" // its agent does not do such work; nothing was done
	Canceled      State = "canceled"
)

// next are the states that may follow each; none follows the end of a task.
var next = map[State][]State{
	Submitted:     {Working, Completed, Failed, Rejected, Canceled},
	Working:       {InputRequired, AuthRequired, Completed, Failed, Rejected, Canceled},
	InputRequired: {Working, Failed, Canceled},
	AuthRequired:  {Working, Failed, Canceled},
}

// Ended reports whether a task in this state has ended.
func (s State) Ended() bool {
	return s == Completed || s == Failed || s == Rejected || s == Canceled
}

// Before reports whether a task may go from this state to a later one.
func (s State) Before(later State) bool {
	return slices.Contains(next[s], later)
}

// LiveFirst compares tasks by whether they have ended.
func LiveFirst(a, b Task) int {
	if x, y := a.State.Ended(), b.State.Ended(); x != y {
		return map[bool]int{true: 1, false: -1}[x]
	}
	return 0
}

// Sort orders tasks for a list: those that have not ended first, and then the newest.
func Sort(all []Task) {
	slices.SortStableFunc(all, func(a, b Task) int {
		return cmp.Or(LiveFirst(a, b), cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID))
	})
}

// Cut returns the first tasks of a list, those that have not ended before the others, and how many it
// leaves out. All tasks are among them that have not ended, as many as a site can have.
func Cut(all []Task, most int) (first []Task, more int) {
	slices.SortStableFunc(all, LiveFirst)
	live := slices.IndexFunc(all, func(t Task) bool { return t.State.Ended() })
	if live < 0 {
		live = len(all)
	}
	n := min(len(all), max(most, min(live, MaxLive)))
	return all[:n], len(all) - n
}

// Skill is something that an agent says it can be asked for.
type Skill struct {
	ID          string   `json:"id"` // [a-z0-9_-]{1,24}
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitzero"`
	// Input is a JSON Schema of Request.Arguments; none for a skill without arguments.
	Input jsontext.Value `json:"input,omitzero"`
	// Seconds is how long it takes, as far as that is known before; answers take longer.
	Seconds float64 `json:"seconds,omitzero"`
}

// TalkSkill is the ID of the skill of agents that understand words: Request.Text is all that they need.
const TalkSkill = "talk"

// IsTag reports whether a word can be a tag by which an agent is found: [a-z0-9-]{1,24}.
func IsTag(word string) bool {
	return word != "" && len(word) <= 24 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Agent is an agent that may be asked.
type Agent struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitzero"`
	Skills      []Skill `json:"skills"`
}

// Request asks an agent for a task.
type Request struct {
	Agent string `json:"agent"`
	Skill string `json:"skill,omitzero"` // may be left out where the agent has one
	// Text describes the work in words, for agents that understand them.
	Text      string         `json:"text,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"` // a JSON object, as the skill's Input says
	Seconds   *float64       `json:"seconds,omitzero"`   // until when it has to have ended, from now; else an hour more than its skill's Seconds
	// Context names a conversation: one of the asker's choice, in at most 128 printable characters of
	// ASCII, or the ID of the task that began it without one.
	Context string `json:"context,omitzero"`
	// Again says that it may have been asked before with this Key, without an answer.
	Again        bool       `json:"-"`
	agents.Terms `json:"-"` // Key: asked again with it, the same task is answered
}

// Task is a piece of work as it stands.
type Task struct {
	ID      string `json:"id"`    // opaque, [A-Z2-7]{26}, in a group SITE/ID; a handle is not a permission
	Agent   string `json:"agent"` // in a group SITE/AGENT
	Skill   string `json:"skill,omitzero"`
	State   State  `json:"state"`
	Says    string `json:"says,omitzero"`    // one sentence for people: progress, or why it failed
	Partial string `json:"partial,omitzero"` // of a working one: the text of its result, as far as it is written
	Asker   string `json:"asker,omitzero"`
	Context string `json:"context,omitzero"` // as it was asked
	Created string `json:"created"`          // RFC 3339 in UTC, as Changed
	Changed string `json:"changed"`
	// Question is set while it is needed: in InputRequired, and in AuthRequired for people to read.
	Question  *Question      `json:"question,omitzero"`
	Result    jsontext.Value `json:"result,omitzero"` // of a completed task: what its agent returned, JSON
	Fault     string         `json:"fault,omitzero"`  // of a failed one: a kind of device.Fault
	Steps     []Step         `json:"steps,omitzero"`  // where it was asked for
	Text      string         `json:"text,omitzero"`   // as it was asked, as Arguments
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Of a task of this site, beside Steps: the idempotency key that it was asked with, and its
	// questions so far.
	Key       string     `json:"-"`
	Exchanges []Exchange `json:"-"`
}

// Exchange is a question of a task with its answer, "" while there is none.
type Exchange struct {
	Question
	Answer string
}

// Conversation returns the context of a task. A task that was asked without one begins a
// conversation, which its ID names.
func (t *Task) Conversation() string { return cmp.Or(t.Context, t.ID) }

// Words returns the words of a task's result: the result where that is a text, or its member text.
func (t *Task) Words() (words string, ok bool) {
	text := t.Result
	if text.Kind() == '{' {
		var of struct {
			Text jsontext.Value `json:"text"`
		}
		if json.Unmarshal(text, &of) == nil {
			text = of.Text
		}
	}
	return words, text.Kind() == '"' && json.Unmarshal(text, &words) == nil
}

// Question is something that a task needs to know.
type Question struct {
	ID   string `json:"id"` // of this question of this task
	Text string `json:"text"`
	// Options are the answers that there are; any text where there are none.
	Options []string `json:"options,omitzero"`
}

// Step is one thing that a task did, or was about to do.
type Step struct {
	Does   string         `json:"does"` // one sentence, or a tool with its arguments
	Time   string         `json:"time"`
	At     time.Time      `json:"-"` // of its end, or its begin while it runs, by Go's clock; zero elsewhere
	Result jsontext.Value `json:"result,omitzero"`
	// Outcome is "" while the step runs, else "done" or a kind of fault. A step that a crash cut
	// off has unknown_outcome, and is never made again.
	Outcome string `json:"outcome,omitzero"`
	Says    string `json:"says,omitzero"`
	// Of a task of this site, what the step asks of it: an operation, OpOwn for any other work; of a
	// move the output, its value, none for a return to safe, and the length, 0 where none was said.
	Op     agents.Operation `json:"-"`
	Output string           `json:"-"`
	Value  device.Value     `json:"-"`
	For    time.Duration    `json:"-"`
	// Approved says that an owner approved the step.
	Approved bool `json:"-"`
}

// May reports whether the step was made, or may have been.
func (s *Step) May() bool { return s.Outcome == "done" || s.Outcome == string(device.UnknownOutcome) }

// Host takes tasks: the hosted agents of a site, or those of a remote one. A principal sees its
// own tasks, and an owner all. Errors are faults with a kind. Methods are safe for concurrent use.
type Host interface {
	// Agents returns the agents that p may ask.
	Agents(ctx context.Context, p agents.Principal) ([]Agent, error)
	// Ask makes a task, which is durable when it is returned. Only an agent that p may ask takes it.
	Ask(ctx context.Context, p agents.Principal, r Request) (Task, error)
	// Task returns one, with its steps. List returns all of p's, in the order of Sort, without steps,
	// results, texts and arguments.
	Task(ctx context.Context, p agents.Principal, id string) (Task, error)
	List(ctx context.Context, p agents.Principal) ([]Task, error)
	Watcher
	// Answer answers the question of that ID.
	Answer(ctx context.Context, p agents.Principal, id, question, answer string) (Task, error)
	// Cancel ends a task before its next step, and releases its leases. It returns once it has.
	Cancel(ctx context.Context, p agents.Principal, id string) (Task, error)
}

// Work is a task as its agent has it.
type Work interface {
	// Task returns a copy of the task, with the steps of before, which a restart may lie behind. A step
	// without a known outcome must not be made again.
	Task() Task
	// Step makes durable that something is about to be done, does it, and notes its result. Moves,
	// texts and pictures that are asked of the site are steps by themselves. key is an idempotency
	// key of the step. When Step returns an error of its own, do was not called.
	Step(ctx context.Context, does string, do func(ctx context.Context, key string) (any, error)) (jsontext.Value, error)
	// Input asks the asker, and blocks until there is an answer. A question that was answered
	// before a restart returns its answer at once.
	Input(ctx context.Context, q Question) (answer string, err error)
	// Say reports progress in one sentence. It does not block for the disk.
	Say(text string)
}

// Talk is Work of an agent that understands words. A conversation is the tasks of one asker with
// one agent and the same Task.Conversation.
type Talk interface {
	Work
	// Earlier returns the ended tasks of the conversation, the newest last and at most so many; none
	// where Context is "".
	Earlier(ctx context.Context, most int) ([]Task, error)
	// Through adds the chain of callers that asked the agent, and its task, to the terms of a call
	// that is not the site's own. The site's own calls have it.
	Through(t agents.Terms) agents.Terms
	// Write shows the text of the result so far. It does not block for the disk.
	Write(text string)
}

// Asker is Work that can ask agents of other sites.
type Asker interface {
	Work
	// Ask asks Agent, SITE/AGENT, for a task, and returns that when it is completed; any other end
	// is an error. It is one step. Seconds bound it, an hour when left out. After a restart, if the
	// last step has no outcome, call Ask with the same request before any other step. It goes on
	// waiting for the same task. A task that asks a question is canceled there: nobody here sees it.
	Ask(ctx context.Context, r Request) (Task, error)
}
