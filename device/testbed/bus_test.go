package testbed

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// rig is a bus with one chip on it.
type rig struct {
	*Bus
	t  *testing.T
	at byte
}

func newRig(t *testing.T, at byte, c Chip) rig {
	b := NewBus()
	b.Add("chip", at, c)
	return rig{b, t, at}
}

func (r rig) write(b ...byte) {
	r.t.Helper()
	if err := r.Write(r.at, b); err != nil {
		r.t.Fatal(err)
	}
}

func (r rig) read(n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	if err := r.Read(r.at, b); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// expect reads from a register.
func (r rig) expect(register byte, want ...byte) {
	r.t.Helper()
	r.write(register)
	if got := r.read(len(want)); !bytes.Equal(got, want) {
		r.t.Errorf("register %#02x is % x, want % x", register, got, want)
	}
}

func (r rig) setInput(what string, value float64) {
	r.t.Helper()
	if err := r.SetInput("chip", what, value); err != nil {
		r.t.Fatal(err)
	}
}

func (r rig) outputs() any {
	r.t.Helper()
	seen, err := r.Inspect("chip")
	if err != nil {
		r.t.Fatal(err)
	}
	return seen.Outputs
}

func TestBus(t *testing.T) {
	r := newRig(t, 0x48, NewTMP102())
	one := make([]byte, 1)
	if err := r.Read(0x49, one); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("an empty address: %v", err)
	}
	r.SetStuck(true)
	if err := r.Write(0x48, []byte{1}); !errors.Is(err, ErrStuck) {
		t.Errorf("a stuck bus: %v", err)
	}
	r.SetStuck(false)
	r.write() // tests the address, and writes nothing
	if seen, err := r.Inspect("chip"); err != nil || seen.Writes != 0 || seen.State != OK {
		t.Errorf("%+v, %v", seen, err)
	}
	if r.SetInput("chip", "colour", 1) == nil || r.SetInput("nobody", "temperature", 1) == nil || r.SetState("chip", "tired") == nil {
		t.Error("nonsense was taken")
	}
}

// TestStates: an unresponsive chip keeps its registers, an unplugged one loses them.
func TestStates(t *testing.T) { synctest.Test(t, testStates) }

func testStates(t *testing.T) {
	r := newRig(t, 0x48, NewTMP102())
	r.setInput("temperature", 33)
	for state, kept := range map[State][]byte{Unresponsive: {0x10, 0x00}, Absent: {0x4b, 0x00}} {
		r.write(2, 0x10, 0x00) // a limit
		if err := r.SetState("chip", state); err != nil {
			t.Fatal(err)
		}
		if err := r.Write(0x48, []byte{2}); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("%s: %v", state, err)
		}
		r.SetState("chip", OK)
		r.expect(2, kept...)
		time.Sleep(tmpConversion)
		r.expect(0, 0x21, 0x00) // inputs stay
	}
}

// TestCalls tests the addresses that chips have besides their own.
func TestCalls(t *testing.T) {
	b := Board()
	one := make([]byte, 1)
	if err := b.Read(0x70, one); err != nil {
		t.Errorf("a PCA9685 answers at the address of all its kind: %v", err)
	}
	b.Write(0x40, []byte{0, 0x10})
	if err := b.Read(0x70, one); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("without ALLCALL: %v", err)
	}
	b.Write(0x60, []byte{0x0f, 0xff})
	if err := b.Write(0x00, []byte{0x06}); err != nil {
		t.Fatal(err)
	}
	if seen, _ := b.Inspect("mcp4725"); seen.Outputs.(map[string]uint16)["out"] != 2048 {
		t.Errorf("after a general reset %v", seen)
	}
}
