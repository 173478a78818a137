package rpc

// Evidence is what a carrier can prove of who is there: all zero when nothing.
// It is not a principal; node makes one of it.
type Evidence struct {
	Peer   string // a peer ID that a handshake proved
	Bearer string // a token that was presented and that nobody has checked yet
	Local  string // the local socket that the caller could open: LocalOwner or LocalAgent
}

// The local sockets. Opening one takes the file permissions of the site's owner.
const (
	LocalOwner = "owner" // what the command line speaks through
	LocalAgent = "agent" // what a model's client speaks through
)
