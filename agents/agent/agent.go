// Package agent defines the vocabulary of hosted agents: the interfaces of an agent, its definition
// and its current state.
package agent

import (
	"context"
	"errors"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// Agent is an agent that the site's owner configured. The exported fields of its struct,
// with json tags, are the YAML keys of its kind; `jsonschema:"…"` tags describe them.
type Agent interface {
	// Run works until ctx ends. It asks the site as self, a principal KIND:NAME with the
	// permissions that its owner gave it: to run inside the site is no privilege. When it
	// returns an error it is run again after a back-off; after nil it has ended.
	Run(ctx context.Context, self agents.Principal, site agents.Site) error
}

// ErrRemoved is the cause of the end of ctx where the owner removed the agent from the configuration, in
// which no agent has its name any more.
var ErrRemoved = errors.New("the agent was removed")

// Resting is an Agent that needs no goroutine while nothing happens: a site may have many.
type Resting interface {
	Agent
	// Begin is Run that does not block. ended is called once with what Run returns, in a goroutine of
	// its own. After ctx has ended, End follows: that each agent waits for its ctx would take more
	// memory than most agents.
	Begin(ctx context.Context, self agents.Principal, site agents.Site, ended func(error))
	// End ends what Begin began, if that is not over. It does not block.
	End()
}

// Kind is one entry of the list of kinds of agents.
type Kind struct {
	Name string       // as in the YAML; [a-z]{1,24}
	Doc  string       // one line for people
	New  func() Agent // returns a pointer to a struct that holds the defaults
}

// Defined is a Agent whose definition says more than its fields.
type Defined interface {
	Agent
	// Define checks the definition, before anything runs. The error is a *Mistake.
	Define() (Definition, error)
}

// Definition states what an agent reads and does, as its owner configured it.
type Definition struct {
	// Reads are points that the agent may read without a permission that says so: the owner
	// named them in the agent's definition.
	Reads []string
	// Moves are outputs. Two agents of one rank that move one output are a mistake.
	Moves []string
	// Tools are the names of all tools that the agent may come to offer. No two agents have one.
	Tools []string
	// Rank is above 0 for an agent that others may take an output over from: owners, and agents
	// of a higher rank.
	Rank int
	// Calls lists the calls of its definition, as far as they are known. Doubts lists what works, but
	// perhaps not as its owner wants it.
	Calls  []Call
	Doubts []*Mistake
	// Secrets are the files beside the configuration that the agent reads, which only their owner may read.
	Secrets []Secret
	// Powerless says what does not work where its owner gave it no permission; "" for an agent that needs none.
	Powerless string
	// Fixed says that the owner wrote all that its tasks do, so that the permission to ask for one is
	// the permission for that. What any other agent does for an asker is bounded by that asker's
	// permission, too.
	Fixed bool
}

// Secret is a file with a secret, which a key names; "" where it is not written.
type Secret struct{ Key, File string }

// Call is a call that an agent makes by its definition, at the line of a key.
type Call struct {
	Key string
	Ask agents.Ask
	// Longest is the longest time that the output permits at a time; 0 for any, or not known.
	Longest time.Duration
}

// Mistake is a mistake in an agent's definition, at the line of a key.
type Mistake struct {
	Key string
	Err error
}

func (m *Mistake) Error() string { return m.Key + ": " + m.Err.Error() }
func (m *Mistake) Unwrap() error { return m.Err }

// Reporting is a Agent that tells what it does.
type Reporting interface {
	Agent
	// Report may wait for a call that is under way, until ctx ends. The zero Report is that of
	// an agent that does not run.
	Report(ctx context.Context) Report
}

// Worker is an Agent that takes tasks.
type Worker interface {
	Agent
	// Skills returns the skills of its tasks. They are constant.
	Skills() []task.Skill
	// Work works on a task until it is done. site journals each move with the task and its asker,
	// and makes it a step of the task. ctx ends when the task is canceled, when it is late, or when
	// the site ends. After a restart of the site, Work is called again. A fault that is Invalid
	// before the first step rejects the task; any other error fails it. Tasks of one agent run one
	// after another, but while one waits for an answer, an approval or another site, others run.
	Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (result jsontext.Value, err error)
}

// Report describes the current activity of an agent and its reason.
type Report struct {
	State State  `json:"state"`
	Says  string `json:"says,omitzero"` // one sentence for people
	// Decided are the values that decide the condition of a rule: of those that it reads, the ones that
	// would have to change first.
	Decided []Decided `json:"decided_by,omitzero"`
}

// Decided is a value that an agent read; none of a point that is not known.
type Decided struct {
	Point string       `json:"point"`
	Value device.Value `json:"value"`
}

// State is the state of a hosted agent.
type State string

const (
	Idle     State = "idle"
	Waiting  State = "waits"  // for something that Says names
	Holding  State = "holds"  // outputs
	Yielding State = "yields" // to somebody else who moved its output
	Paused   State = "paused" // by an owner
	Draft    State = "draft"  // it came as a bundle, and an owner has not accepted it
	Failed   State = "failed" // it is run again after a while
	Running  State = "runs"   // and tells no more
)
