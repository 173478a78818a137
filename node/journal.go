package node

import (
	"time"

	"agentsite/device"
)

// Journal records moves, and deduplicates repeated calls. Its errors are faults.
type Journal interface {
	// Replay returns the outcome of an earlier call with the same principal and key, nil if there
	// was none. It is refused if the key stands for another call, or for a call with an unknown
	// outcome.
	Replay(Asked) (*Outcome, error)
	// Begin makes it durable that a call is about to be made, and blocks for the disk. Then end is
	// to be called once, with the outcome. Unless there is an earlier one: then, and after an error,
	// the call must not be made.
	Begin(Asked) (end func(Outcome), earlier *Outcome, err error)
	// Add records an action made without Begin. It does not block.
	Add(Asked, Outcome)
	// Deny counts a call that was refused. It does not block.
	Deny(who, tool string, kind device.FaultKind)
	// Recent returns the last calls about an output, by its address, or about the whole site,
	// by their tool; the oldest first. It does not block.
	Recent(about string) []Recorded
}

// noJournal lets nothing move away from safe.
type noJournal struct{}

func (noJournal) Replay(Asked) (*Outcome, error) { return nil, nil }
func (noJournal) Begin(Asked) (func(Outcome), *Outcome, error) {
	return nil, nil, device.Faultf(device.Unavailable, "there is no journal to write to, so nothing moves away from safe")
}
func (noJournal) Add(Asked, Outcome)                    {}
func (noJournal) Deny(string, string, device.FaultKind) {}
func (noJournal) Recent(string) []Recorded              { return nil }

// Asked is a call as the journal has it.
type Asked struct {
	Who, Tool string
	Args      []byte // JSON, in one form for equal arguments
	Key       string // for retries; "" without one
	// Via are the agents through which Who asked, the nearest last.
	Via []string
}

// Outcome is the outcome of a call.
type Outcome struct {
	Fault string // its kind; "" when it was done
	Says  string // the fault's sentence
	Value []byte // the result as JSON
}

// Recorded is a call with its outcome. Equal calls one after another are one.
type Recorded struct {
	Asked             // without a key; without arguments that are long
	Begun   time.Time // the first of them, by the site's clock
	Ended   time.Time // the last of them; the zero Time while it runs, and where its end is not known
	Outcome string    // Done, the kind of a fault, or "" while it runs
	Says    string    // the beginning of the fault's sentence
	Count   int       // of equal calls
}

// Done is the outcome of a call that succeeded.
const Done = "done"
