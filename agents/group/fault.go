package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// maxState bounds what a site has a caller bring back.
const maxState = 4 << 10

// Kinds are those that a site may answer with. Any other is a defect of the site's.
var Kinds = []device.FaultKind{
	device.Invalid, device.Denied, device.Unsafe, device.Busy, device.Offline, device.Expired, device.UnknownOutcome, device.Unavailable,
}

// refusals say in our words what the kinds mean.
var refusals = map[device.FaultKind]string{
	device.Invalid:        "does not take this call; list_points, or ask_agent without arguments, says what it takes",
	device.Denied:         "does not permit this to you",
	device.Unsafe:         "does not do this now, by its owner's limits",
	device.Busy:           "is busy, or somebody else holds this; try again later",
	device.Offline:        "does not reach the device",
	device.Expired:        "got this too late, and nothing was moved; call again",
	device.UnknownOutcome: "does not know whether this was done; look with read_points",
	device.Unavailable:    "cannot do this now",
}

// failed returns the error of a call as its caller hears it.
func (m *member) failed(c call, err error) error {
	var needs *agents.ApprovalNeeded
	var unreached *agents.Unreached
	kind, answered := kindOf(err)
	switch {
	case errors.As(err, &needs) && (len(needs.State) > maxState || strings.Contains(needs.State, " ")): // with a space it would be of a task's question
		return m.unexpected(c)
	case needs != nil:
		return &agents.ApprovalNeeded{
			State: needs.State,
			Says: "the owner of " + m.name + " has to approve this while it waits: agentsite approve lists what waits, on that site's machine or with --site; " +
				"then make the very same call again",
		}
	case answered:
		return refused(m.name, kind, err)
	case errors.As(err, &unreached):
		return m.away(err)
	case c.reads():
		return device.Faultf(device.Offline, "%s gave no answer that can be read; try again", m.name)
	}
	look := agents.OpRead
	if c.op == agents.OpAsk {
		look = agents.OpAsk
	}
	return device.Faultf(device.UnknownOutcome, "%s gave no answer that can be read, and may or may not have done this: look with %s. A call that is repeated with its agentsite/idempotency-key is made once", m.name, look.Tool())
}

// Refused returns the fault of a call that a site of that name has refused, in words that a model
// may read; nil where the site has not answered.
func Refused(site string, err error) error {
	kind, answered := kindOf(err)
	if !answered {
		return nil
	}
	return refused(site, kind, err)
}

func refused(site string, kind device.FaultKind, err error) error {
	if says := known(err.Error()); says != "" {
		return device.Faultf(kind, "%s says: %s", site, says)
	}
	return device.Faultf(kind, "%s %s; what it says of that is for people (agentsite --site %[1]s)", site, refusals[kind])
}

// unexpected is the fault of an answer that no site of ours gives.
func (m *member) unexpected(c call) error {
	kind := device.UnknownOutcome
	if c.reads() {
		kind = device.Unavailable
	}
	return device.Faultf(kind, "%s answered %s with something else than a site does; look at it, or leave it out", m.name, c.tool())
}

// kindOf returns the kind of fault that a site has answered with, if it has.
func kindOf(err error) (kind device.FaultKind, answered bool) {
	var says interface{ FaultKind() string }
	var wrong interface{ Malformed() } // by a client, of an answer that it cannot read: a fault in it is the decoder's
	var unreached *agents.Unreached
	var fault *device.Fault
	switch {
	case errors.As(err, &wrong), errors.As(err, &unreached):
		return "", false
	case errors.As(err, &says):
		kind = device.FaultKind(says.FaultKind())
	case errors.As(err, &fault) && fault.Kind != device.Offline: // with that, a client says that the site has gone
		kind = fault.Kind
	default:
		return "", false
	}
	if !slices.Contains(Kinds, kind) {
		kind = device.Unavailable
	}
	return kind, true
}

// away returns the fault of a call to a site that is away.
func (m *member) away(err error) error {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.awayLocked(err)
}

func (m *member) awayLocked(err error) error {
	since := ""
	if !m.lost.IsZero() {
		since = " for " + device.FormatDuration(time.Since(m.lost).Round(time.Second)) + " now"
	}
	if err == nil {
		err = m.why
	}
	if err == nil {
		return device.Faultf(device.Offline, "%s has not answered yet; see that it is switched on and in this network, and try again", m.name)
	}
	return device.Faultf(device.Offline, "%s is not reached%s (%s); see that it is switched on and in this network, and try again", m.name, since, reason(err))
}

// reason says in words of our own why a site is away: the error may hold text from the site
// or from the network.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	switch _, answered := kindOf(err); {
	case answered:
		return "it refuses"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	for _, ours := range []error{errTellsTooMuch, errEnded, errSilent} {
		if errors.Is(err, ours) {
			return ours.Error()
		}
	}
	return "no connection"
}
