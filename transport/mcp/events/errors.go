package events

import (
	"errors"

	"agentsite/agents/event"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// kind is a kind of errors of the extension.
type kind int

const (
	notFound kind = iota
	forbidden
	exhausted
	unsupported
	callback
)

// The first code of the kinds, which have codes in descending order. MCP forbids new codes in the sketch's range, and
// reserves the SEP's for what the specification defines: who declares the extension gets the SEP's.
const (
	firstSEP    = -32023
	firstSketch = -32011
)

// refusal is an error of a kind, with its data.
type refusal struct {
	kind kind
	text string
	data any
}

func (e *refusal) Error() string { return e.text }

type (
	kindData struct {
		Kind string `json:"kind"`
	}
	limitData struct {
		Limit string `json:"limit"`
	}
	reasonData struct {
		Reason string `json:"reason"`
	}
	featureData struct {
		Feature string `json:"feature"`
		Value   string `json:"value,omitzero"`
		Reason  string `json:"reason,omitzero"`
	}
)

var (
	errNoEvent = &refusal{notFound, "there is no such event, or it is not of such a point, for you: events/list has the " +
		"names of both", kindData{"event"}}
	errNoHook = &refusal{notFound, "you have no such subscription", kindData{"subscription"}}
)

// asRefusal returns err as an error of the extension; nil for one that every method may have.
func asRefusal(err error) *refusal {
	var own *refusal
	var fault *device.Fault
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, event.ErrUnknown):
		return errNoEvent
	case errors.Is(err, event.ErrForbidden):
		return &refusal{forbidden, "your permission for this has ended", nil}
	case errors.Is(err, event.ErrChanged):
		return &refusal{unsupported, "the event has other arguments now: events/list has them",
			featureData{"schema", "", "schema_changed"}}
	case !errors.As(err, &fault):
		return nil
	case fault.Kind == device.Denied:
		return &refusal{forbidden, fault.Msg, nil}
	case fault.Kind == device.Busy:
		return &refusal{exhausted, fault.Msg, limitData{"subscriptions"}}
	}
	return nil
}

// Refuse returns err as the error that a client gets, which declares the extension or not; nil for one that is not of
// the extension.
func Refuse(err error, declared bool) *rpc.Error {
	var fault *device.Fault
	if r := asRefusal(err); r != nil {
		return &rpc.Error{Code: r.code(declared), Message: r.text, Data: r.data}
	}
	if errors.As(err, &fault) && fault.Kind == device.Invalid {
		return rpc.Errorf(rpc.CodeInvalidParams, "%s", fault.Msg)
	}
	return nil
}

func (e *refusal) code(declared bool) int {
	if declared {
		return firstSEP - int(e.kind)
	}
	return firstSketch - int(e.kind)
}
