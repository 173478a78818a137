// Package legacy serves the revisions of the Model Context Protocol that open with a handshake,
// 2025-11-25 and older. It uses the official Go SDK over the same node.
//
// A session is a handle like any other: it belongs to the principal that opened it, and it is
// bounded in number and in time. It holds no state of the site, so that the end of a session costs
// its client only a new handshake.
//
// Specification: https://modelcontextprotocol.io/specification/2025-11-25
package legacy
