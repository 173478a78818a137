// Package owner serves the methods of a site's owners: claim, grants, tokens, approvals, recovery,
// the emergency stop's reset, reload. The methods are JSON-RPC beside MCP, so that no tool and no
// model's client reaches them. They require an owner's key or the machine's own socket. The few for
// callers without any permission yet (claim, recovery, showing a grant) need a proven key.
//
// It may import transport/rpc, node and the packages below it, agents and device. The
// client is in transport/owner/client.
package owner
