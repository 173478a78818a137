package rpc

// Evidence is what a carrier can prove of who is there: all zero when nothing.
// It is not a principal; node makes one of it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // a token that was presented and that nobody has checked yet
	Local  Local  // the local socket that the caller could open
	UID    int    // the caller's user, with Local
}

// Local names a local socket. Opening one takes the file permissions of the
// site's owner.
type Local string

const (
	LocalOwner Local = "owner" // the command line
	LocalAgent Local = "agent" // what a model's client speaks through
)
