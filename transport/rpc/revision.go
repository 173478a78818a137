package rpc

// Revisions and Handshakes are the one table of MCP revisions, each newest first. Requests of Revisions are
// independent of each other, and the site answers them itself; those of Handshakes open a session, which
// transport/mcp/legacy serves. Another revision without sessions is a row of Revisions.
var (
	Revisions  = []string{Revision}
	Handshakes = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
)

// HasHandshake reports whether requests of a revision belong to a session. One that is newer than the table has none:
// it is refused with the revisions that there are.
func HasHandshake(revision string) bool { return revision < Revisions[len(Revisions)-1] }

// The constants of MCP that streams and carriers use.
const (
	// Revision is the newest revision, in which our own clients ask.
	Revision = "2026-07-28"
	// methodInitialize opens a session of an older revision.
	methodInitialize = "initialize"
	methodCall       = "tools/call"
	// methodCancelled cancels a request.
	methodCancelled = "notifications/cancelled"
)
