package agents

import (
	"time"

	"agentsite/device"
)

// Effect classifies how a call changes the world. The zero Effect is the strongest: a call without
// a declared effect may move an output.
type Effect uint8

const (
	Acts    Effect = iota // it may move something away from safe, or cannot be undone
	Reads                 // it changes nothing
	Returns               // it goes to safe, and nowhere else
)

// Ask describes a call for the check of its permission.
type Ask struct {
	Op     Operation
	Tool   string   // of OpOwn
	Points []string // the addresses that it names, as they came; none where it names none; of OpAsk the agent
	Effect Effect
	Value  device.Value  // of OpMove; none for a release
	For    time.Duration // how long it holds them; 0 leaves that to the output
}

// AnswerTool is the tool of permissions by which the key of a phone answers calls that wait for an owner. No tool can
// have this name, as those of hosted programs have an underscore, so that it permits nothing else. Programs do not get
// it.
const AnswerTool = "approve"

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

// Limits are the limits of a permission within those of an output.
type Limits struct {
	Range   *device.Range // nil leaves it
	Lease   time.Duration // the longest; 0 leaves it
	Confirm bool          // an owner has to confirm each call
}
