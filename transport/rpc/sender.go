package rpc

import "agentsite/agents/principal"

// Sender is who sent a message, as the carrier proved it.
type Sender struct {
	Who     principal.Principal // the zero Principal for a stranger
	Refused error               // why the sender is a stranger
	Key     string              // the peer ID that a handshake or a signature proved; "" for none
}

// Principal returns the sender, or why it is a stranger.
func (s *Sender) Principal() (principal.Principal, error) {
	switch {
	case s.Who.ID != "":
		return s.Who, nil
	case s.Refused != nil:
		return principal.Principal{}, s.Refused
	}
	return principal.Principal{}, Errorf(403, "not authenticated: present a token or a key")
}

// From returns a function for the Sender of a Stream that does not change.
func From(who principal.Principal) func() Sender {
	return func() Sender { return Sender{Who: who} }
}
