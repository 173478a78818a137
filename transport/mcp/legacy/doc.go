// Package legacy is the Model Context Protocol of the revisions that open with a
// handshake, 2025-11-25 and older, by the official Go SDK over the same node.
//
// A session is a handle like any other: it belongs to the principal who opened it,
// and it is bounded in number and in time. Nothing of the site lives in it, so one
// that is ended costs its client a new handshake and no more.
//
// Specification: https://modelcontextprotocol.io/specification/2025-11-25
package legacy
