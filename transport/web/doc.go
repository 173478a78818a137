// Package web carries JSON-RPC over HTTP and HTTPS: POST /mcp in JSON or CBOR, with
// server-sent events where an answer is a stream.
//
// Everything that HTTP serves is in one table of routes, which adapters add to. Handler checks each
// request in one place before its route. First is the exact Host allow-list, then Origin against
// the same list, then the token or the key. It knows bytes, headers, limits and principals, and
// no operation and no tool.
package web
