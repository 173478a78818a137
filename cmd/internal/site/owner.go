package site

import (
	"context"
	"errors"

	"agentsite/device"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/transport/rpc"
)

// ResetMethod ends the emergency stop, ReloadMethod reads the configuration again.
const (
	ResetMethod  = "owner/reset"
	ReloadMethod = "owner/reload"
)

// addOwner adds the owner's own methods. They stand outside MCP: no model's client
// names them, and only the owner's evidence opens them.
func addOwner(methods map[string]rpc.Method, door *node.Node, reset, reload func(context.Context) error) {
	methods[ResetMethod] = ownersOnly(door, "reset", func(ctx context.Context) error {
		if err := reset(ctx); err != nil {
			return rpc.Errorf(rpc.CodeInternal, "%v", err)
		}
		return nil
	})
	methods[ReloadMethod] = ownersOnly(door, "reload", func(ctx context.Context) error {
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
}

func ownersOnly(door *node.Node, command string, do func(context.Context) error) rpc.Method {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		who, err := door.Who(node.Evidence(c.Evidence))
		if err != nil || !who.Owner {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "this is the owner's: run agentsite %s on the site's own machine", command)
		}
		if err := do(ctx); err != nil {
			return nil, err
		}
		return struct{}{}, nil
	}
}
