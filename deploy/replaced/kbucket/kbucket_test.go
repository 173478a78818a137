package kbucket

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
)

// TestGenRandPeerID: a generated ID shares exactly as many bits as asked for, and is random.
func TestGenRandPeerID(t *testing.T) {
	peers, err := pstoremem.NewPeerstore()
	if err != nil {
		t.Fatal(err)
	}
	defer peers.Close()
	local := ConvertKey("a site")
	rt, err := NewRoutingTable(20, local, time.Minute, peers, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for cpl := range PeerIDPreimageMaxCpl + 1 {
		a, err := rt.GenRandPeerID(cpl)
		b, err2 := GenRandPeerIDWithCPL(local, cpl)
		if err != nil || err2 != nil || a == b || a.Validate() != nil {
			t.Fatalf("%d: %s, %s: %v, %v", cpl, a, b, err, err2)
		}
		if got := CommonPrefixLen(local, ConvertPeerID(a)); got != int(cpl) {
			t.Errorf("%d bits are common, not %d", got, cpl)
		}
	}
	if _, err := rt.GenRandPeerID(PeerIDPreimageMaxCpl + 1); err == nil {
		t.Error("a prefix that is too long is not refused")
	}
}
