package testbed

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// TestRadio: a controller answers commands, and reports advertisers only while it scans.
func TestRadio(t *testing.T) {
	host, line := net.Pipe()
	defer host.Close()
	var r Radio
	a, err := ParseAdvert("CB:B8:33:4C:88:4F random 020106")
	if err != nil {
		t.Fatal(err)
	}
	r.Advertise([]RadioAdvert{a})
	go r.Serve(line, 50*time.Millisecond)
	ask := func(opcode uint16, parameters ...byte) []byte {
		t.Helper()
		if _, err := host.Write(append([]byte{1, byte(opcode), byte(opcode >> 8), byte(len(parameters))}, parameters...)); err != nil {
			t.Fatal(err)
		}
		return readEvent(t, host)
	}
	if got := ask(0x1009); !bytes.Equal(got, []byte{0x0e, 10, 1, 0x09, 0x10, 0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("address: %x", got)
	}
	if r.Reports() > 0 {
		t.Error("it reports without a scan")
	}
	if got := ask(0x200c, 1, 0); got[5] != 0 {
		t.Errorf("scan: %x", got)
	}
	want := []byte{0x3e, 15, 2, 1, 3, 1, 0x4f, 0x88, 0x4c, 0x33, 0xb8, 0xcb, 3, 2, 1, 6, 0xc4}
	if got := readEvent(t, host); !bytes.Equal(got, want) {
		t.Errorf("report: %x", got)
	}
	for _, line := range []string{"", "AA:BB random 02", "CB:B8:33:4C:88:4F random xy"} {
		if _, err := ParseAdvert(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

// readEvent reads a packet of H4, without its type.
func readEvent(t *testing.T, from io.Reader) []byte {
	t.Helper()
	head := make([]byte, 3)
	if _, err := io.ReadFull(from, head); err != nil || head[0] != 4 {
		t.Fatalf("%x: %v", head, err)
	}
	rest := make([]byte, head[2])
	if _, err := io.ReadFull(from, rest); err != nil {
		t.Fatal(err)
	}
	return append(head[1:], rest...)
}
