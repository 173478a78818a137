package agents

import (
	"time"

	"agentsite/device"
)

// Effect is what a call does to the world. The zero Effect is the strongest: what
// nobody has said to be less may move something.
type Effect uint8

const (
	Acts    Effect = iota // it may move something away from safe, or cannot be undone
	Reads                 // it changes nothing
	Returns               // it goes to safe, and nowhere else
)

// Ask is what a call is about to do, as far as permissions go.
type Ask struct {
	Op     Operation
	Tool   string   // of OpOwn
	Points []string // the addresses that it names, as they came; none where it names none; of OpAsk the agent
	Effect Effect
	Value  device.Value  // of OpMove; none for a release
	For    time.Duration // how long it holds them; 0 leaves that to the output
}

// Name returns the name of the operation, as permissions, the journal and approvals write it.
func (a Ask) Name() string {
	switch a.Op {
	case OpOwn:
		return a.Tool
	case OpMove:
		return moveTool(a.Value)
	case OpWhy:
		return toolNames[OpRead]
	}
	return toolNames[a.Op]
}

// ReturnsToSafe reports whether the call can only return outputs to safe.
func (a Ask) ReturnsToSafe() bool {
	return a.Effect == Returns || a.Op == OpStop || a.Op == OpMove && a.Value.IsZero()
}

// Limits are what a permission leaves of what an output allows.
type Limits struct {
	Range   *device.Range // nil leaves it
	Lease   time.Duration // the longest; 0 leaves it
	Confirm bool          // an owner has to confirm each call
}
