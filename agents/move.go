package agents

import "context"

// Mover is an Agent some of whose tools move things. The door asks it what a call
// would move before it lets the call be made.
type Mover interface {
	// Plan checks a call and does nothing of it. It returns nil for a tool that moves
	// nothing: Call is all there is to that.
	Plan(p Principal, c Call) (*Move, error)
}

// Move is a call that moves something, well formed and not yet made.
type Move struct {
	Args []byte // the arguments as JSON, the same for equal arguments in whatever form
	// ToSafe says that nothing leaves its safe value. Nothing may hold such a call up.
	ToSafe  bool
	Idle    bool // ToSafe, and all of it is there already
	Confirm bool // an owner wants to be asked first

	Try  func(ctx context.Context) error // what would be refused now; nothing moves
	Make func(ctx context.Context) (Result, error)
}

// Terms are what a caller asks of a call beside its arguments, under their names in
// MCP's _meta. They matter to a Move that leaves safe, and to nothing else.
type Terms struct {
	// Key makes a call that is repeated with it act once: 1 to 64 printable characters
	// of ASCII, of the caller's own choice.
	Key *string `json:"agentsite/idempotency-key,omitzero"`
	// Within is how many seconds after the call came in it may still begin.
	Within *float64 `json:"agentsite/expires-in,omitzero"`
}
