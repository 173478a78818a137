// Package stdio carries JSON-RPC over byte streams in MCP's stdio framing, one message per line. It
// serves the site's local sockets, and pipes a client's standard input and output to one of them.
//
// It knows bytes, and which local users may open a socket. Each socket is for one principal, which it
// does not know.
package stdio
