// Package mcp implements the kind of agent that offers the tools of another program, a child. A
// child is a server of the Model Context Protocol behind a socket of the service manager, or behind
// pipes.
//
// A child is not trusted. Its messages are bounded before they are decoded. A tool is offered only
// as the owner accepted it, and its answers are marked as the child's. The caller passes in how a
// child is reached and where the accepted definitions are stored.
package mcp
