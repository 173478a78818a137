// Package client asks an agent elsewhere by the Agent2Agent protocol (A2A), 1.0 or 0.3, over JSON-RPC. It
// asks only an agent whose card the owner has accepted, at the host of the URL that the owner wrote.
//
// The protocol is that of https://a2a-protocol.org; "section" means one of its specification.
package client
