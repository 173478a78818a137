package journal

import "time"

// Kind says what an entry tells.
type Kind string

const (
	Intent Kind = "intent" // a call that is about to be made
	Result Kind = "result" // what came of the intent Of
	Done   Kind = "done"   // a call that did not wait for the disk, and what came of it
	Denied Kind = "denied" // Count calls that were refused
	Event  Kind = "event"  // something that nobody asked for: a return to safe, a repair
)

// Entry is one line of the journal.
type Entry struct {
	Seq  uint64 `cbor:"1,keyasint"` // from 1, without gaps
	At   int64  `cbor:"2,keyasint"` // by the site's clock, ms since 1970; it may have been wrong
	Kind Kind   `cbor:"3,keyasint"`
	Who  string `cbor:"4,keyasint,omitempty"` // the principal
	Tool string `cbor:"5,keyasint,omitempty"`
	// Of an intent, and of what is done.
	Args   []byte `cbor:"6,keyasint,omitempty"` // as JSON; nil when longer than maxArgs
	Digest []byte `cbor:"7,keyasint,omitempty"` // SHA-256 of tool and arguments
	Key    string `cbor:"8,keyasint,omitempty"` // the caller's idempotency key
	// Of a result, and of what is done.
	Of    uint64 `cbor:"9,keyasint,omitempty"`  // the intent's Seq
	Fault string `cbor:"10,keyasint,omitempty"` // its kind; "" when it was done
	Value []byte `cbor:"11,keyasint,omitempty"` // what the call brought, as JSON; nil when longer than maxValue
	// Of several.
	Says  string `cbor:"12,keyasint,omitempty"` // a sentence
	Count int    `cbor:"13,keyasint,omitempty"`
}

// Time is At as a time.
func (e Entry) Time() time.Time { return time.UnixMilli(e.At) }

// What is kept of a call. Longer things are left out, not cut.
const (
	maxArgs  = 4 << 10
	maxValue = 16 << 10
	maxSays  = 1 << 10
)
