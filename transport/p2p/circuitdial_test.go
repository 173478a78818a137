package p2p

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"agentsite/node/identity"
)

// silentAddr returns an address of loopback at which nothing answers: for TCP, connections are
// accepted, and nothing is said.
func silentAddr(t *testing.T, network string) string {
	t.Helper()
	if network == "tcp" {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", c.LocalAddr().(*net.UDPAddr).Port)
}

// TestSilent: relays and addresses that do not answer do not delay the relay that does, though they
// rank before it, by QUIC or as direct ones.
func TestSilent(t *testing.T) {
	for name, silent := range map[string]func() []string{
		"relays": func() (at []string) {
			for range 3 {
				at = append(at, silentAddr(t, "udp")+"/p2p/"+identity.New().ID().PeerID()+"/p2p-circuit")
			}
			return append(at, silentAddr(t, "tcp")+"/p2p/"+identity.New().ID().PeerID()+"/p2p-circuit")
		},
		"addresses": func() (at []string) {
			for range 20 {
				at = append(at, silentAddr(t, "udp"))
			}
			return at
		},
	} {
		t.Run(name, func(t *testing.T) {
			relay, site := newHost(t, Options{Relay: &Relay{}}, overTCP), newHost(t, Options{}, overTCP)
			other := newHost(t, Options{})
			at := append(silent(), over(t, relay, site)...)
			ctx, cancel := context.WithTimeout(t.Context(), relayTimeout-500*time.Millisecond) // less than the silent ones have
			defer cancel()
			begun := time.Now()
			if err := other.Reach(ctx, site.id(t), at); err != nil || other.hasDirectConn(site.ID()) {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		})
	}
}
