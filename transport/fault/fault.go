// Package fault maps the kinds of faults to error codes of JSON-RPC, and the answers of agents
// elsewhere to faults, for all adapters that need it.
package fault

import (
	"net/http"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// codes are those of docs/wire.md. Our own are outside the ranges that JSON-RPC and MCP reserve.
var codes = map[device.FaultKind]int{
	device.Invalid:        rpc.CodeInvalidParams,
	device.Denied:         403,
	device.Unsafe:         409,
	device.Busy:           rpc.CodeBusy,
	device.Offline:        502,
	device.Expired:        410,
	device.UnknownOutcome: 504,
	device.Unavailable:    503,
	device.Internal:       rpc.CodeInternal,
}

// Code returns the error code of a kind, where a fault is the answer to a request.
func Code(kind device.FaultKind) int { return codes[kind] }

// kinds are those of the codes that an agent elsewhere answers with. 502 is the agent's own
// connection, not this site's to it.
var kinds = map[int]device.FaultKind{
	rpc.CodeInvalidParams: device.Invalid, rpc.CodeMethodNotFound: device.Invalid,
	403: device.Denied, 409: device.Unsafe, 410: device.Expired, rpc.CodeBusy: device.Busy, 504: device.UnknownOutcome,
}

// result returns the result in an agent's answer of JSON-RPC, or its error as a fault without its
// text. protocol maps codes that the protocol adds to kinds; it may be nil.
func result(text []byte, protocol map[int]device.FaultKind) (jsontext.Value, error) {
	var answer struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error == nil && len(answer.Result) == 0 {
		return nil, device.Faultf(device.UnknownOutcome, "it answered with something else than JSON-RPC")
	}
	if answer.Error == nil {
		return answer.Result, nil
	}
	kind, ok := protocol[answer.Error.Code]
	if !ok {
		kind, ok = kinds[answer.Error.Code]
	}
	if !ok {
		kind = device.Unavailable
	}
	return nil, device.Faultf(kind, "it refused the call (code %d)", answer.Error.Code)
}

// status returns the fault of an agent's answer with a status of HTTP other than 200.
func status(code int) error {
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return device.Faultf(device.Denied, "it does not permit this to this site")
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return device.Faultf(device.Busy, "it is busy (status %d)", code)
	case code >= 500:
		return device.Faultf(device.UnknownOutcome, "it answered with the status %d", code)
	}
	return device.Faultf(device.Unavailable, "it answered with the status %d", code)
}

// refused is the fault of a call that the agent elsewhere, or its client here, did not accept.
type refused struct{ *device.Fault }

func (r refused) FaultKind() string { return string(r.Kind) }

// Told returns an error as that of another site, which was not reached, whose answer is unknown, or
// which refused.
func Told(err error) error {
	if err == nil {
		return nil
	}
	f := device.AsFault(err)
	switch f.Kind {
	case device.Offline:
		return &agents.Unreached{Err: f}
	case device.UnknownOutcome:
		return f
	}
	return refused{f}
}
