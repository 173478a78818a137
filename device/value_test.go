package device

import (
	"strings"
	"testing"
	"unsafe"
)

// TestSize: the compiler keeps structs of at most four words in registers, also on 32-bit boards.
func TestSize(t *testing.T) {
	if size, most := unsafe.Sizeof(Value{}), 8+2*unsafe.Sizeof(uintptr(0)); size > most {
		t.Errorf("a Value has %d bytes, more than %d", size, most)
	}
}

func TestTextsCompare(t *testing.T) {
	word := "open"
	if a, b := Text(word), Text(strings.Clone(word)); a != b || a.Text() != word {
		t.Errorf("%v and %v differ, or are not %s", a, b, word)
	}
	for _, other := range []Value{{}, Number(0), Bool(false), Text(""), Text("close")} {
		if other == Text(word) {
			t.Errorf("%v equals %s", other, word)
		}
	}
	if (Value{}) == Text("") || Number(1).Text() != "" {
		t.Error("a value that is no text has one")
	}
}

func TestTidy(t *testing.T) {
	for in, want := range map[float64]float64{-512 * 0.000598: -0.306176, 25080 * 0.001: 25.08, 100.653 * 1000: 100653, 0: 0, 1e300: 1e300, 123456789.6: 123456790, 1e-30: 1e-30} {
		if got := Tidy(in); got != want {
			t.Errorf("%v is tidied to %v, want %v", in, got, want)
		}
	}
}
