// Package mcp is the kind of agent that offers the tools of another program, a child: a server of
// the Model Context Protocol that speaks over a socket of the service manager's, or over pipes.
//
// A child is not trusted. Its messages are bounded before they are decoded, a tool is offered only
// in the words that an owner accepted, and what it answers is marked as its own. How a child is
// reached, and where the accepted definitions are stored, is passed in.
package mcp
