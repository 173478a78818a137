package rpc

// Evidence is what a carrier proves about a caller, zero for nothing. The node derives the
// principal from it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // an unchecked token
	Local  string // the local way in
}

// Local ways in. The file permissions of the site's owner protect the sockets; any program on
// the machine can use loopback.
const (
	LocalOwner    = "owner" // the command line's socket
	LocalAgent    = "agent" // the socket for MCP clients
	LocalLoopback = "loopback"
)
