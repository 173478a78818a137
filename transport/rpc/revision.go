package rpc

// The constants of MCP that streams and carriers use.
const (
	// Revision is the MCP revision that the site serves itself, with independent requests.
	Revision = "2026-07-28"
	// methodInitialize opens a session of an older revision.
	methodInitialize = "initialize"
	methodCall       = "tools/call"
	// methodCancelled cancels a request.
	methodCancelled = "notifications/cancelled"
)
