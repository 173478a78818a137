package p2p

import (
	"testing"

	"agentsite/node/identity"

	ma "github.com/multiformats/go-multiaddr"
)

// TestRank: relays wait for the addresses at which the peer answers itself, wherever these
// are, and for nothing where there is none.
func TestRank(t *testing.T) {
	around := ma.StringCast("/ip4/192.0.2.1/udp/8475/quic-v1/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf/p2p-circuit")
	for _, at := range []string{"/ip4/192.168.1.5/udp/8473/quic-v1", "/ip4/203.0.113.7/tcp/8473"} {
		for _, a := range rankDials([]ma.Multiaddr{around, ma.StringCast(at)}) {
			if wait := a.Addr.Equal(around); wait != (a.Delay >= directHeadStart) {
				t.Errorf("beside %s, %v is dialled after %v", at, a.Addr, a.Delay)
			}
		}
	}
	if all := rankDials([]ma.Multiaddr{around}); len(all) != 1 || all[0].Delay != 0 {
		t.Errorf("a relay alone is dialled as %v", all)
	}
	other := ma.StringCast("/ip4/192.0.2.2/udp/8475/quic-v1/p2p/12D3KooWASH7gLDBNPM7THULmnM1yRciD9MkHMi3vRCKMaFiWDTF/p2p-circuit")
	for _, a := range rankDials([]ma.Multiaddr{around, other}) {
		if wait := a.Addr.Equal(other); wait != (a.Delay >= directHeadStart) {
			t.Errorf("of two relays, %v is dialled after %v", a.Addr, a.Delay)
		}
	}
	var many []ma.Multiaddr
	for range maxDialsPerPeer {
		many = append(many, ma.StringCast("/ip4/192.0.2.3/tcp/8475/p2p/"+identity.New().ID().PeerID()+"/p2p-circuit"))
	}
	for _, a := range rankDials(many) {
		if a.Delay > maxRelaysWait {
			t.Fatalf("of %d relays, one is dialled after %v", len(many), a.Delay)
		}
	}
}
