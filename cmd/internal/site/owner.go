package site

import (
	"context"

	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/transport/rpc"
)

// ResetMethod ends the emergency stop.
const ResetMethod = "owner/reset"

// addOwner adds the owner's own methods. They stand outside MCP: no model's client
// names them, and only the owner's evidence opens them.
func addOwner(methods map[string]rpc.Method, door *node.Node, outputs *guard.Guard) {
	methods[ResetMethod] = func(_ context.Context, c *rpc.Call) (any, error) {
		who, err := door.Who(node.Evidence(c.Evidence))
		if err != nil || !who.Owner {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "this is the owner's: run agentsite reset on the site's own machine")
		}
		if err := outputs.Reset(); err != nil {
			return nil, rpc.Errorf(rpc.CodeInternal, "%v", err)
		}
		return struct{}{}, nil
	}
}
