package rpc

// Evidence is what a carrier can prove of who is there: all zero when nothing.
// It is not a principal; node makes one of it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // a token that was presented and that nobody has checked yet
	Local  string // by which of the ways that end on this machine the caller came
}

// The ways that end on this machine. Opening one of the sockets takes the file permissions
// of the site's owner; loopback is open to every program here.
const (
	LocalOwner    = "owner" // the socket that the command line speaks through
	LocalAgent    = "agent" // the socket that a model's client speaks through
	LocalLoopback = "loopback"
)
