package internet

import (
	"testing"

	"agentsite/node/identity"
	"agentsite/transport/p2p"
)

// TestJoinFails: a realm that cannot be joined is an error, and nothing is left behind.
func TestJoinFails(t *testing.T) {
	if n, err := Join(Options{P2P: p2p.Options{Key: identity.New()}, Realms: []Realm{{}}}); n != nil || err == nil {
		t.Errorf("%v, %v", n, err)
	}
}
