package agents

import (
	"time"
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
	Tool   string
	Points []string // the addresses that it names, as they came; none where it names none
	Effect Effect
	Value  *float64      // what it sets its points to, 0 and 1 for off and on; nil for nothing
	For    time.Duration // how long it holds them; 0 leaves that to the output
}

// Limits are what a permission leaves of what an output allows.
type Limits struct {
	Range   *Range        // nil leaves it
	Lease   time.Duration // the longest; 0 leaves it
	Confirm bool          // an owner has to confirm each call
}

// Range is a closed interval.
type Range struct{ Min, Max float64 }

func (r Range) Contains(n float64) bool { return n >= r.Min && n <= r.Max }
