package web

import "net/http"

// Signatures verifies signatures in the headers of requests.
type Signatures interface {
	// Read returns the signature of a request, nil for one without.
	Read(r *http.Request) (*Signed, error)
	// Challenge adds to the headers of a refusal how to sign, and the error; err is nil if nothing
	// was signed.
	Challenge(h http.Header, err error)
}

// Signed is the signature of a request.
type Signed struct {
	Peer string // the peer ID of the key that signed
	// Use consumes the signature for an account, once its key is admitted, and refuses a replay.
	Use func(account string) error
	// CheckBody refuses a body that was not signed.
	CheckBody func([]byte) error
}

// unproved answers a request whose signature proves nothing. It returns false.
func (r *Route) unproved(w http.ResponseWriter, err error) bool {
	r.Signed.Challenge(w.Header(), err)
	r.refuse(w, http.StatusUnauthorized, err.Error())
	return false
}
