package agents

import "context"

// Planner is an Agent that says what a call is about before it is made. The door asks
// it, and asks whether the caller may.
type Planner interface {
	// Plan checks a call and does nothing of it. It returns nil for a tool of which it
	// knows no more than Call does. With an error it returns what it knows of the Ask,
	// or nil: who may not ask that is told so instead.
	Plan(p Principal, c Call) (*Plan, error)
}

// Plan is a call that is well formed and not yet made.
type Plan struct {
	Ask Ask
	// Args writes the arguments as JSON, the same for equal arguments in whatever form. It
	// is nil with an error.
	Args func() ([]byte, error)
	// Idle says of what Returns to safe that all of it is there already.
	Idle    bool
	Confirm bool // an owner wants to be asked first

	// Try says what would be refused now; nothing moves. It is nil for what moves
	// nothing away from safe.
	Try  func(context.Context, Limits) error
	Make func(context.Context, Limits) (Result, error)
	// Undo returns to safe what Make moved; nil where there is a nil Try.
	Undo func(context.Context) error
}

// Viewer is an Agent of which somebody may see only a part.
type Viewer interface {
	// View is the agent without what sees is false for, as if that did not exist. It
	// stays as it is when what sees says changes.
	View(sees func(Ask) bool) (Agent, error)
	// Reads is what reading a resource is, as far as permissions go.
	Reads(uri string) Ask
}
