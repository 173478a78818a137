package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"agentsite/device"
)

// fault is an error with the kind of a device.Fault.
type fault struct{ kind, msg string }

func faultf(kind, format string, args ...any) error {
	return &fault{kind, fmt.Sprintf(format, args...)}
}

func (f *fault) Error() string     { return f.msg }
func (f *fault) FaultKind() string { return f.kind }

// kinds are those that a site may answer with. Any other is a defect of the site's.
var kinds = []string{"invalid", "denied", "unsafe", "busy", "offline", "expired", "unknown_outcome", "unavailable"}

// refusals say in our words what the kinds mean.
var refusals = map[string]string{
	"invalid":         "does not take this call; list_points says what it takes",
	"denied":          "does not permit this to you",
	"unsafe":          "does not do this now, by its owner's limits",
	"busy":            "is busy, or somebody else holds this; try again later",
	"offline":         "does not reach the device",
	"expired":         "got this too late, and nothing was moved; call again",
	"unknown_outcome": "does not know whether this was done; look with read_points",
	"unavailable":     "cannot do this now",
}

// failed is the error of a call as the caller hears it.
func failed(p *peer, v verb, err error) error {
	kind, answered := kindOf(err)
	var unreached *Unreached
	switch {
	case answered:
		if says := known(err.Error()); says != "" {
			return faultf(kind, "%s says: %s", p.name, says)
		}
		return faultf(kind, "%s %s; what it says of that is for people (agentsite --site %[1]s)", p.name, refusals[kind])
	case errors.As(err, &unreached):
		return p.absent(err)
	case v.acts:
		return faultf("unknown_outcome", "%s did not answer, and may or may not have done this: look with read_points. A call that is repeated with its agentsite/idempotency-key is made once", p.name)
	}
	return faultf("offline", "%s did not answer; try again", p.name)
}

// kindOf is the kind of fault that a site has answered with, if it has.
func kindOf(err error) (kind string, answered bool) {
	var says interface{ FaultKind() string }
	if !errors.As(err, &says) {
		return "", false
	}
	if kind = says.FaultKind(); !slices.Contains(kinds, kind) {
		kind = "unavailable"
	}
	return kind, true
}

// absent is the fault of a call to a site that is away.
func (p *peer) absent(err error) error {
	p.house.mu.Lock()
	defer p.house.mu.Unlock()
	since := ""
	if !p.lost.IsZero() {
		since = fmt.Sprintf(" for %v now", device.FormatDuration(time.Since(p.lost).Round(time.Second)))
	}
	if err == nil {
		err = p.why
	}
	if err == nil {
		return faultf("offline", "%s has not answered yet; see that it is switched on and in this network, and try again", p.name)
	}
	return faultf("offline", "%s is not reached%s (%s); see that it is switched on and in this network, and try again", p.name, since, reason(err))
}

// reason says in words of our own why a site is away: the error may hold text from the site
// or from the network.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	switch _, answered := kindOf(err); {
	case answered:
		return "it refuses"
	case errors.Is(err, errTellsTooMuch):
		return errTellsTooMuch.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, errEnded):
		return errEnded.Error()
	}
	return "no connection"
}
