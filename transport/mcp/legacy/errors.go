package legacy

import (
	"errors"

	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/fault"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// isProtocolError tells what the client has done wrong from what went wrong with
// a tool, which the model should see.
func isProtocolError(err error) bool {
	var needs *tools.NeedsCapability
	return errors.As(err, &needs) || errors.Is(err, tools.ErrNotFound)
}

func asError(err error) error {
	var needs *tools.NeedsCapability
	switch {
	case errors.As(err, &needs):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: needs.Error()}
	case errors.Is(err, tools.ErrNotFound):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	f := device.AsFault(err)
	return &jsonrpc.Error{Code: int64(fault.Code(f.Kind)), Message: f.Msg}
}

// sendable removes the data of an error if it is not JSON. The SDK quotes an unknown URI in Go's
// syntax, and an answer that cannot be written ends the session.
func sendable(err error) error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && len(wire.Data) > 0 && !jsontext.Value(wire.Data).IsValid() {
		return &jsonrpc.Error{Code: wire.Code, Message: wire.Message}
	}
	return err
}
