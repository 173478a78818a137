package p2p

import (
	"sync/atomic"
	"testing"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestNoRetryStorm counts the handshakes of a site with a configured relay that is none, and with a
// relay that grants reservations and closes connections.
func TestNoRetryStorm(t *testing.T) {
	for name, o := range map[string]Options{"no relay": {}, "closes": {Relay: &Relay{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay := newHost(t, o, overTCP)
			var handshakes atomic.Int32
			first := make(chan struct{})
			relay.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
				if handshakes.Add(1) == 1 {
					close(first)
				}
				if o.Relay != nil {
					time.AfterFunc(20*time.Millisecond, func() { c.Close() })
				}
			}})
			newHost(t, Options{Key: identity.New(), Relays: []peer.AddrInfo{{ID: relay.ID(), Addrs: relay.Addrs()}}})
			const span = 2 * time.Second // in which there were 500 and 70
			select {
			case <-first:
			case <-time.After(patience):
				t.Fatal("it is not tried")
			}
			time.Sleep(span)
			if n := handshakes.Load(); n > 4 {
				t.Errorf("%d handshakes in %v", n, span)
			}
		})
	}
}
