// Package owner serves the operations of a site's owners (node/acts) as JSON-RPC methods beside MCP,
// so that no tool and no model's client reaches them. They require an owner's key or the machine's
// own socket. The few methods for callers without any permission yet (claim, recovery, showing a
// grant) need a proven key. The client is in transport/owner/client.
package owner
