package rpc

// Evidence is a carrier's proof of the caller's identity, zero for none. The node derives the
// principal from it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // an unchecked token
	Local  string // the local way in
	// Principal is the result of a carrier's admission for this request, so that the node does not
	// authenticate again; nil otherwise. Only the node knows its type.
	Principal any
}

// Local ways in. The file permissions of the site's owner protect the sockets; any program on
// the machine can use loopback.
const (
	LocalOwner    = "owner" // the command line's socket
	LocalAgent    = "agent" // the socket for MCP clients
	LocalLoopback = "loopback"
)
