package device

import (
	"errors"
	"fmt"
	"time"
)

// FaultKind is why something was not done. The list is short and append-only: the
// kinds cross the wire, and each protocol maps them once.
type FaultKind string

const (
	Invalid        FaultKind = "invalid"         // the call is wrong; repeating it will not help
	Denied         FaultKind = "denied"          // the caller may not
	Unsafe         FaultKind = "unsafe"          // the guard refused
	Busy           FaultKind = "busy"            // in use; try later
	Offline        FaultKind = "offline"         // the device or site cannot be reached
	Expired        FaultKind = "expired"         // it came too late
	UnknownOutcome FaultKind = "unknown_outcome" // it may or may not have happened
	Unavailable    FaultKind = "unavailable"     // not now: starting, stopping, overloaded, disk full
	Internal       FaultKind = "internal"        // a defect of ours
)

// Fault is an error with a kind and a sentence with the remedy.
type Fault struct {
	Kind FaultKind
	Msg  string
	Err  error // the cause, if any, for errors.Is and As; its text is in Msg
	// Names are the points and holders that Msg mentions besides the request's own. Short
	// says the same without them, for callers that may not read them.
	Names []string
	Short string
	// After is the time until the same call is allowed, if no lease is renewed meanwhile; 0 if that is not
	// known. Msg says it, too.
	After time.Duration
}

// In sets After.
func (f *Fault) In(after time.Duration) *Fault {
	f.After = after
	return f
}

// Naming sets the names that f mentions, and its text without them.
func (f *Fault) Naming(short string, names ...string) *Fault {
	f.Names, f.Short = names, short
	return f
}

func (f *Fault) Error() string { return f.Msg }
func (f *Fault) Unwrap() error { return f.Err }

// Faultf returns a fault. A %w keeps its cause, and a time.Duration is written by
// FormatDuration, for which the verb is %v.
func Faultf(kind FaultKind, format string, args ...any) *Fault {
	err := fmt.Errorf(format, formatted(args)...)
	return &Fault{Kind: kind, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// AsFault returns the fault in err. Any other error becomes a fault with its text. Its kind is that
// of the error's method FaultKind (for packages that do not import device), or Internal.
func AsFault(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	var says interface{ FaultKind() string }
	if errors.As(err, &says) && says.FaultKind() != "" {
		return &Fault{Kind: FaultKind(says.FaultKind()), Msg: err.Error(), Err: err}
	}
	return &Fault{Kind: Internal, Msg: err.Error(), Err: err}
}
