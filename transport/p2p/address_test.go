package p2p

import (
	"slices"
	"testing"
)

// TestWithBoth: of a relay's address for QUIC or TCP the other one is inferred, once.
func TestWithBoth(t *testing.T) {
	const one, two = "/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN", "/p2p/12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo"
	for _, c := range []struct{ given, want []string }{
		{[]string{"/ip4/192.0.2.7/udp/8475/quic-v1" + one}, []string{"/ip4/192.0.2.7/udp/8475/quic-v1" + one, "/ip4/192.0.2.7/tcp/8475" + one}},
		{[]string{"/ip6/2001:db8::1/tcp/443" + one}, []string{"/ip6/2001:db8::1/tcp/443" + one, "/ip6/2001:db8::1/udp/443/quic-v1" + one}},
		{[]string{"/ip4/192.0.2.7/tcp/1" + one, "/dns4/relay.example/udp/2/quic-v1" + two, "/ip4/192.0.2.7/udp/1/quic-v1" + one}, []string{
			"/ip4/192.0.2.7/tcp/1" + one, "/ip4/192.0.2.7/udp/1/quic-v1" + one,
			"/dns4/relay.example/udp/2/quic-v1" + two, "/dns4/relay.example/tcp/2" + two}},
		{[]string{"/ip4/192.0.2.7/udp/1/quic-v1" + one + "/p2p-circuit" + two}, []string{"/ip4/192.0.2.7/udp/1/quic-v1" + one + "/p2p-circuit" + two}},
		{nil, nil},
	} {
		if got, err := WithBothTransports(c.given); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q becomes %q %v, not %q", c.given, got, err, c.want)
		}
	}
	if _, err := WithBothTransports([]string{"192.0.2.7"}); err == nil {
		t.Error("an address that names nobody is taken")
	}
}
