package rpc

import (
	"cmp"

	"agentsite/agents/principal"
)

// Sender is who sent a message, as the carrier proved it.
type Sender struct {
	Who     principal.Principal // the zero Principal for a stranger
	Refused error               // why the sender is a stranger
	Key     string              // the peer ID that a handshake or a signature proved; "" for none
}

// Principal returns the sender, or why it is a stranger.
func (s *Sender) Principal() (principal.Principal, error) {
	if s.Who.ID == "" {
		return principal.Principal{}, cmp.Or(s.Refused, principal.ErrNobody)
	}
	return s.Who, nil
}

// From returns a function for the Sender of a Stream that does not change.
func From(who principal.Principal) func() Sender {
	return func() Sender { return Sender{Who: who} }
}
