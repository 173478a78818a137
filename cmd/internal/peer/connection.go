package peer

import (
	"io"

	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
)

// Connection is a connection to a site, whose answers are untrusted data. Close it after use.
type Connection struct {
	*client.Client
	io.Closer
	Owner *ownerclient.Client // for its owner's methods
}

// connected makes a Connection. dialled is the key that the carrier verified, the zero ID if a
// socket or a token identifies the site. name is the contact's, "" for none.
func connected(c *client.Client, closer io.Closer, dialled identity.ID, name string) *Connection {
	return &Connection{c, closer, ownerclient.New(c, dialled, name)}
}
