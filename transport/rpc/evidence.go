package rpc

// Evidence is what a carrier proves about a caller, zero for nothing. The node derives the
// principal from it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // an unchecked token
	Local  string // the local way in
	// Principal is what a carrier's admission made of the other fields for this one request, so
	// that the node does not do it again; nil otherwise. Only the node knows what it is.
	Principal any
}

// Local ways in. The file permissions of the site's owner protect the sockets; any program on
// the machine can use loopback.
const (
	LocalOwner    = "owner" // the command line's socket
	LocalAgent    = "agent" // the socket for MCP clients
	LocalLoopback = "loopback"
)
