// Package event is the vocabulary of events: what a caller may be told of when it happens, with nobody asking.
// Package node/events makes them of what a site records; the protocol adapters deliver them.
package event

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"agentsite/agents"
)

// Type is a kind of events that a caller may ask for.
type Type struct {
	Name        string // as in point.crossed
	Description string
	Input       json.RawMessage // the JSON Schema of Request.Args; its enumerations name what the caller may read
	Payload     json.RawMessage // the JSON Schema of Event.Data
}

// Request asks for the events of one type.
type Request struct {
	Name   string
	Args   json.RawMessage // an object
	Cursor string          // after which events are told; "" for those from now on
	MaxAge time.Duration   // events from before that are left out; 0 for no bound
	Max    int             // events in a page; 0 for the site's bound
}

// Event is one occurrence. Its ID is the same for all callers and all ways of delivery, also where it is told again.
type Event struct {
	ID     string
	Name   string
	At     time.Time // by the site's clock
	Sure   bool      // that was known
	Data   json.RawMessage
	Cursor string // to go on after this event
}

// Page is the answer to one Request.
type Page struct {
	Events    []Event
	Cursor    string // to go on after these; of the same length for all
	Truncated bool   // events may be missing before these
	More      bool   // there are further ones now
	// Next is the time after which it is worth to ask again.
	Next time.Duration
}

// Errors of a Source. What a caller asks wrongly is a device.Fault of the kind invalid, and what there is no room for
// one of the kind busy.
var (
	// ErrUnknown is for a type that the site does not have for the caller, and for a point that it may not read: the
	// two are not told apart.
	ErrUnknown = errors.New("there is no such event")
	// ErrForbidden is for a caller whose permission has ended.
	ErrForbidden = errors.New("the permission has ended")
	// ErrChanged is for a request that the site does not take any more as it stands: its type has other arguments now.
	ErrChanged = errors.New("the event has changed")
)

// Source has events. It is safe for concurrent use.
type Source interface {
	// Types lists what p may ask for, the same order each time.
	Types(ctx context.Context, p agents.Principal) ([]Type, error)
	// Check refuses a request that Poll would refuse, and returns its arguments in their canonical form: equal bytes for
	// equal requests.
	Check(ctx context.Context, p agents.Principal, r Request) (canonical json.RawMessage, err error)
	// Poll returns the events after a cursor, and does not wait for any.
	Poll(ctx context.Context, p agents.Principal, r Request) (Page, error)
	// Follow is Poll without an end: it calls emit with each Page that has events or is truncated, first with an empty one
	// that has the cursor from which it follows, until ctx ends, emit fails or p may not read any more. After a long time
	// without events an empty one has a newer cursor. A slow emit delays nobody. It takes no place among the
	// subscriptions; who calls it does.
	Follow(ctx context.Context, p agents.Principal, r Request, emit func(Page) error) error
}
