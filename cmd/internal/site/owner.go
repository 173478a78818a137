package site

import (
	"context"
	"errors"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/transport/rpc"
)

// ResetMethod ends the emergency stop, ReloadMethod reads the configuration again, and
// TakeOverMethod makes the owner the holder of the output that its name says.
const (
	ResetMethod    = "owner/reset"
	ReloadMethod   = "owner/reload"
	TakeOverMethod = "owner/take-over"
)

// ownersOutputs is what only an owner may do with the outputs.
type ownersOutputs interface {
	Reset(ctx context.Context) error
	TakeOver(ctx context.Context, holder, output string) error
}

// addOwner adds the owner's own methods. They stand outside MCP: no model's client
// names them, and only the owner's evidence opens them.
func addOwner(methods map[string]rpc.Method, door *node.Node, outputs ownersOutputs, reload func(context.Context) error) {
	methods[ResetMethod] = ownersOnly(door, "reset", func(ctx context.Context, _ agents.Principal, _ string) error {
		if err := outputs.Reset(ctx); err != nil {
			return rpc.Errorf(rpc.CodeInternal, "%v", err)
		}
		return nil
	})
	methods[ReloadMethod] = ownersOnly(door, "reload", func(ctx context.Context, _ agents.Principal, _ string) error {
		err := reload(ctx)
		var mistake *config.Error
		switch {
		case err == nil:
			return nil
		case errors.As(err, &mistake), device.AsFault(err).Kind == device.Invalid:
			return rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		case device.AsFault(err).Kind == device.Offline:
			return rpc.Errorf(502, "%v", err) // as docs/wire.md has it
		}
		return rpc.Errorf(rpc.CodeInternal, "%v", err)
	})
	methods[TakeOverMethod] = ownersOnly(door, "set --take-over", func(ctx context.Context, who agents.Principal, output string) error {
		if err := outputs.TakeOver(ctx, who.ID, output); err != nil {
			return rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return nil
	})
}

func ownersOnly(door *node.Node, command string, do func(ctx context.Context, who agents.Principal, name string) error) rpc.Method {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		who, err := door.Who(node.Evidence(c.Evidence))
		if err != nil || !who.Owner {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "this is the owner's: run agentsite %s on the site's own machine", command)
		}
		var about struct {
			Name string `json:"name,omitzero"`
		}
		if err := c.Params.Decode(&about); err != nil && !c.Params.IsZero() {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		if err := do(ctx, who, about.Name); err != nil {
			return nil, err
		}
		return struct{}{}, nil
	}
}
