package rpc

// What streams and carriers have to know of the protocol above, MCP.
const (
	// Revision is the one that the site speaks by itself, whose requests stand alone.
	Revision = "2026-07-28"
	// methodInitialize opens a session of an older one.
	methodInitialize = "initialize"
	// methodCancelled is the notification that a request is not wanted any more.
	methodCancelled = "notifications/cancelled"
)
