// Package mcp serves the Model Context Protocol, revision 2026-07-28, as methods over the node.
// They are the site's JSON-RPC methods, in JSON (which is MCP) or in CBOR (a private encoding of
// the same messages). The revision is stateless, so that nothing is kept between requests except
// open subscriptions.
//
// It knows MCP's messages and headers and the node. It knows no socket, no device
// driver and no permission.
//
// Specification: https://modelcontextprotocol.io/specification/2026-07-28
package mcp
