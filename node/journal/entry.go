package journal

import "time"

// Kind is the kind of an entry.
type Kind string

const (
	Intent Kind = "intent" // a call before it is made
	Result Kind = "result" // the outcome of the intent Of
	Done   Kind = "done"   // a call that did not wait for the disk, with its outcome
	Denied Kind = "denied" // Count calls that were refused
	Event  Kind = "event"  // not a call: a return to safe, a repair
)

// Entry is an entry of the journal.
type Entry struct {
	Seq  uint64 `cbor:"1,keyasint"` // from 1, without gaps
	At   int64  `cbor:"2,keyasint"` // by the site's clock, ms since 1970; events of clock.go say how sure it was
	Kind Kind   `cbor:"3,keyasint"`
	Who  string `cbor:"4,keyasint,omitempty"` // the principal
	Tool string `cbor:"5,keyasint,omitempty"`
	// Of an intent or done.
	Args   []byte `cbor:"6,keyasint,omitempty"` // as JSON; nil when longer than maxArgs
	Digest []byte `cbor:"7,keyasint,omitempty"` // SHA-256 of tool and arguments
	Key    string `cbor:"8,keyasint,omitempty"` // the caller's idempotency key
	// Of a result or done.
	Of    uint64 `cbor:"9,keyasint,omitempty"`  // the intent's Seq
	Fault string `cbor:"10,keyasint,omitempty"` // its kind; "" when it was done
	Value []byte `cbor:"11,keyasint,omitempty"` // the result, as JSON; nil when longer than maxValue
	// Of several kinds.
	Says  string `cbor:"12,keyasint,omitempty"` // a sentence
	Count int    `cbor:"13,keyasint,omitempty"` // of denied, or of done that repeats an earlier one
	// Of an intent or done.
	Via []string `cbor:"14,keyasint,omitempty"` // the agents through which Who asked; a program before it refuses such an entry by name
}

// Time returns At as a time.
func (e Entry) Time() time.Time { return time.UnixMilli(e.At) }

// The limits of a call in the journal. Longer arguments and results are left out, not cut.
const (
	maxArgs  = 4 << 10
	maxValue = 16 << 10
	maxSays  = 1 << 10
)
