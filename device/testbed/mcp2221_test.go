package testbed

import (
	"bytes"
	"testing"
)

func TestMCP2221(t *testing.T) {
	b := Board()
	m := NewMCP2221(b)
	ask := func(report ...byte) [ReportSize]byte { return m.Answer(report) }

	if a := ask(0x10, 0, 0, 0x20, 27); a[1] != 0 || a[3] != 0x20 {
		t.Errorf("the speed: % x", a)
	}
	// A register, as Linux reads it.
	ask(0x94, 1, 0, 0x76<<1, 0xd0)
	ask(0x93, 1, 0, 0x76<<1|1)
	if a := ask(0x40); a[2] != 0x55 || a[3] != 1 || a[4] != 0x60 {
		t.Errorf("the BME280's number: % x", a)
	}
	if a := ask(0x10); a[8] != 0 || a[20] != 0 {
		t.Errorf("the status: % x", a)
	}
	// No chip at the address.
	ask(0x90, 1, 0, 0x50<<1, 0)
	if a := ask(0x10); a[20]&0x40 == 0 {
		t.Errorf("nobody, and the status % x", a)
	}
	ask(0x10, 0, 0x10)
	ask(0x91, 1, 0, 0x50<<1|1)
	if a := ask(0x40); a[2] != 0x25 {
		t.Errorf("nobody, and % x", a)
	}
	ask(0x94, 1, 0, 0x50<<1, 0)
	if a := ask(0x93, 1, 0, 0x50<<1|1); a[1] == 0 || a[2] != 0x25 {
		t.Errorf("nobody, and % x", a)
	}
	// Transfers longer than a report.
	long := bytes.Repeat([]byte{7}, 130)
	long[0] = 0x40
	b.Write(0x3c, []byte{0, 0x20, 0})
	for at := 0; at < len(long); at += payload {
		ask(append([]byte{0x90, byte(len(long)), 0, 0x3c << 1}, long[at:min(at+payload, len(long))]...)...)
	}
	seen, _ := b.Inspect("ssd1306")
	if n := bytes.Count(seen.Outputs.(Screen).Memory, []byte{7}); n != 129 {
		t.Errorf("%d of 129 bytes arrived", n)
	}
	ask(0x91, 100, 0, 0x76<<1|1)
	if a, z := ask(0x40), ask(0x40); a[3] != 60 || z[3] != 40 {
		t.Errorf("%d and %d bytes", a[3], z[3])
	}
	// A chip that hangs: no response to a transfer with it, and to others as before.
	b.SetState("tmp102", Hung)
	ask(0x90, 1, 0, 0x48<<1, 0)
	if !m.hung {
		t.Error("it responds to a transfer with a chip that hangs")
	}
	if ask(0x90, 1, 0, 0x76<<1, 0); m.hung {
		t.Error("it responds to no other transfer either")
	}
	// A line held low.
	b.SetStuck(true)
	ask(0x90, 1, 0, 0x76<<1, 0)
	if a := ask(0x10); a[8] != 0x12 {
		t.Errorf("stuck, and % x", a)
	}
}

// FuzzMCP2221: no report crashes the bridge.
func FuzzMCP2221(f *testing.F) {
	f.Add([]byte{0x90, 2, 0, 0x76 << 1, 0xf4, 0x27, 0x91, 8, 0, 0x76 << 1})
	f.Add([]byte{0x90, 9, 0, 0x18 << 1, 0x78, 0x80, 0x40})
	f.Fuzz(func(t *testing.T, in []byte) {
		m := NewMCP2221(Board())
		for len(in) > 0 {
			n := min(len(in), 12)
			if a := m.Answer(in[:n]); a[0] != in[0] {
				t.Fatalf("% x answered with % x", in[:n], a)
			}
			in = in[n:]
		}
	})
}
