package a2a

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// problem is a kind of error in both bindings (section 5.4).
type problem struct {
	code   int    // of JSON-RPC
	status int    // of HTTP
	grpc   string // the status of google.rpc, which the HTTP binding writes too
	reason string // of the protocol; "" for none
	kind   device.FaultKind
}

const (
	protocolDomain = "a2a-protocol.org" // of reasons that the protocol defines
	siteDomain     = "agentsite"        // of the kinds of faults, in capitals
)

var (
	errTaskNotFound  = &problem{-32001, http.StatusNotFound, "NOT_FOUND", "TASK_NOT_FOUND", ""}
	errNotCancelable = &problem{-32002, http.StatusBadRequest, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE", ""}
	errPush          = &problem{-32003, http.StatusBadRequest, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED", ""}
	errUnsupported   = &problem{-32004, http.StatusBadRequest, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION", ""}
	errContentType   = &problem{-32005, http.StatusBadRequest, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", ""}
	errVersion       = &problem{-32009, http.StatusBadRequest, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED", ""}
	errParams        = &problem{rpc.CodeInvalidParams, http.StatusBadRequest, "INVALID_ARGUMENT", "INVALID_PARAMS", device.Invalid}
)

// faults are the problems of the kinds of faults. The codes are those of the site's other JSON-RPC,
// outside the ranges that JSON-RPC and A2A reserve.
var faults = map[device.FaultKind]*problem{
	device.Invalid:        errParams,
	device.Denied:         {403, http.StatusForbidden, "PERMISSION_DENIED", "UNAUTHORIZED", device.Denied},
	device.Unsafe:         {409, http.StatusConflict, "FAILED_PRECONDITION", "", device.Unsafe},
	device.Busy:           {rpc.CodeBusy, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "", device.Busy},
	device.Offline:        {502, http.StatusBadGateway, "UNAVAILABLE", "", device.Offline},
	device.Expired:        {410, http.StatusGone, "DEADLINE_EXCEEDED", "", device.Expired},
	device.UnknownOutcome: {504, http.StatusGatewayTimeout, "UNKNOWN", "", device.UnknownOutcome},
	device.Unavailable:    {503, http.StatusServiceUnavailable, "UNAVAILABLE", "", device.Unavailable},
	device.Internal:       {rpc.CodeInternal, http.StatusInternalServerError, "INTERNAL", "INTERNAL_ERROR", device.Internal},
}

// failure is a problem with its sentence.
type failure struct {
	*problem
	text string
}

func (f *failure) Error() string { return f.text }

func failf(p *problem, format string, args ...any) error {
	return &failure{p, fmt.Sprintf(format, args...)}
}

func invalid(field string, err error) error {
	if field != "" {
		return failf(errParams, "%s: %v", field, err)
	}
	return failf(errParams, "%v", err)
}

// failureOf returns an error as a failure. A defect of the site is logged, and nobody is told of it.
func failureOf(err error) *failure {
	var ours *failure
	var none adapter.ErrNotFound
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &none):
		return &failure{faults[device.Invalid], err.Error()}
	}
	f := device.AsFault(err)
	if f.Kind == device.Internal {
		if !errors.Is(err, context.Canceled) {
			slog.Error("an A2A request failed", "err", err)
		}
		return &failure{faults[f.Kind], "the site failed at this; its log says more"}
	}
	return &failure{faults[f.Kind], f.Msg}
}

// errorInfo is google.rpc.ErrorInfo.
type errorInfo struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
}

func (p *problem) details() (all []errorInfo) {
	const info = "type.googleapis.com/google.rpc.ErrorInfo"
	if p.reason != "" {
		all = append(all, errorInfo{info, p.reason, protocolDomain})
	}
	if p.kind != "" {
		all = append(all, errorInfo{info, strings.ToUpper(string(p.kind)), siteDomain})
	}
	return all
}

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Data    []errorInfo `json:"data,omitzero"`
}

func (f *failure) rpc() *rpcError { return &rpcError{f.code, f.text, f.details()} }

// httpError is google.rpc.Status as JSON (section 11.6).
type httpError struct {
	Error struct {
		Code    int         `json:"code"`
		Status  string      `json:"status"`
		Message string      `json:"message"`
		Details []errorInfo `json:"details"`
	} `json:"error"`
}

// http renders an error; in 0.3 with the code of JSON-RPC, by which clients of that know it.
func (f *failure) http(legacy bool) *adapter.Answer {
	if legacy {
		return &adapter.Answer{Status: f.status, Value: f.rpc()}
	}
	var e httpError
	e.Error.Code, e.Error.Status, e.Error.Message, e.Error.Details = f.status, f.grpc, f.text, f.details()
	return &adapter.Answer{Status: f.status, Value: e} // in application/json: the protocol's library for Go reads no other
}

// grpcOf are the names of google.rpc of the statuses of refusals that no fault has.
var grpcOf = map[int]string{
	http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound:         "NOT_FOUND",
	http.StatusMethodNotAllowed: "UNIMPLEMENTED", http.StatusServiceUnavailable: "UNAVAILABLE",
}

// refuse is the web.Refusal of the HTTP binding, with the status as its code in 0.3 too.
func refuse(legacy bool) web.Refusal {
	return func(w http.ResponseWriter, status int, why string) {
		f := &failure{&problem{code: status, status: status, grpc: cmp.Or(grpcOf[status], "INVALID_ARGUMENT")}, why}
		text, _ := json.Marshal(f.http(legacy).Value) // it has a form in JSON
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write(text)
	}
}
