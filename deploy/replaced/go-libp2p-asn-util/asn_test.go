package asnutil

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net"
	"testing"
)

// upstream is the SHA-256 of sorted-network-list.bin in the upstream's version that
// README.md names: 20 bytes a network, its first, its last and its system, little-endian.
const upstream = "858da2ac9b97728971753f7d858e6a946178a9456a2dbaf5787781e4ebe2186e"

func TestListIsTheUpstreams(t *testing.T) {
	l, all := load(), sha256.New()
	m, networks := mark{}, 0
	for m.at < len(l.bytes) {
		var start, end uint64
		start, end, m = l.next(m)
		var b [20]byte
		binary.LittleEndian.PutUint64(b[:], start)
		binary.LittleEndian.PutUint64(b[8:], end)
		binary.LittleEndian.PutUint32(b[16:], uint32(m.asn))
		all.Write(b[:])
		networks++
		for _, network := range []uint64{start, end, start + (end-start)/2} {
			if got := AsnForIPv6Network(network); got != uint32(m.asn) {
				t.Fatalf("%x is in AS%d, not AS%d", network, m.asn, got)
			}
		}
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != upstream {
		t.Errorf("%d networks with the SHA-256 %s", networks, got)
	}
}

func TestOutsideTheList(t *testing.T) {
	for _, ip := range []string{"::", "::1", "fe80::1", "fd00::1", "ffff:ffff:ffff:ffff::1", "192.0.2.1"} {
		if got := AsnForIPv6(net.ParseIP(ip)); got != 0 {
			t.Errorf("%s is in AS%d", ip, got)
		}
	}
	if got := AsnForIPv6(nil); got != 0 {
		t.Errorf("no address is in AS%d", got)
	}
	if got, err := Store.AsnForIPv6(net.ParseIP("2a03:2880:f003:c07:face:b00c::2")); err != nil || got != "32934" {
		t.Errorf("%q, %v", got, err)
	}
}
