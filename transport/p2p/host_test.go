package p2p

import (
	"context"
	"testing"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestHosts(t *testing.T) {
	local := []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	a, err := New(Options{Key: identity.New(), Listen: local})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := New(Options{Key: identity.New(), Listen: local})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	t.Log(a.Addrs())
	if err := b.Connect(ctx, peer.AddrInfo{ID: a.ID(), Addrs: a.Addrs()}); err != nil {
		t.Fatal(err)
	}
}
