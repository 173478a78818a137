// Package web carries JSON-RPC over HTTP: POST /mcp in JSON or CBOR, with
// server-sent events where an answer is a stream. Beside it stand /healthz,
// /metrics and a static help page.
//
// It knows bytes, headers, limits and evidence: first the exact Host allow-list,
// then Origin against the same list, then the token, and only then a method. It
// knows no principal and no tool.
package web
