// Package rpc implements JSON-RPC 2.0: one dispatcher and two encodings over the same Go structs.
// JSON is the wire of MCP; CBOR carries the same messages, with the same text keys, as a private
// encoding of ours.
//
// It knows messages, methods and senders. Of MCP it knows the revision, and the names that open a
// session and cancel a request (revision.go). It knows no operation, no tool and no device.
package rpc
