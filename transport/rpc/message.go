package rpc

import "fmt"

// version is the only supported version of JSON-RPC.
const version = "2.0"

// Codes of JSON-RPC 2.0 (section 5.1). Those of a protocol above are its own.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is a JSON-RPC error. In a received error, Data is a Raw.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitzero"`

	// Malformed says that the request itself was at fault and not its subject,
	// which HTTP answers with 400. It is not on the wire.
	Malformed bool `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an error. It sets Malformed for the codes of messages that cannot be
// requests.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{
		Code: code, Message: fmt.Sprintf(format, args...),
		Malformed: code == CodeParse || code == CodeInvalidRequest,
	}
}

// message is any message: a request has a method and an id, a notification a method, a
// response a result or an error.
type message struct {
	Version string     `json:"jsonrpc"`
	ID      ID         `json:"id,omitzero"`
	Method  string     `json:"method,omitzero"`
	Params  Raw        `json:"params,omitzero"`
	Result  Raw        `json:"result,omitzero"`
	Error   *wireError `json:"error,omitzero"`
}

// wireError is a received Error, with its data still encoded.
type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    Raw    `json:"data,omitzero"`
}

// request, notification and response are outbound messages, whose values need not be Raw.
type request struct {
	Version string `json:"jsonrpc"`
	ID      ID     `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitzero"`
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitzero"`
}

type response struct {
	Version string `json:"jsonrpc"`
	ID      ID     `json:"id,omitzero"`
	Result  any    `json:"result,omitzero"`
	Error   *Error `json:"error,omitzero"`
}
