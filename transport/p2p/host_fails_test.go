package p2p

import (
	"net"
	"testing"

	"agentsite/node/identity"
)

// TestPortTaken: where another program has the port, New returns an error and leaves nothing
// behind, for a site and for a relay.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken, err := ListenAddrs(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Listen: taken}, {Listen: taken, Relay: &Relay{}}, {Listen: []string{"no multiaddr"}}} {
		o.Key = identity.New()
		if h, err := New(o); h != nil || err == nil {
			t.Errorf("%+v: %v, %v", o, h, err)
		}
	}
}
