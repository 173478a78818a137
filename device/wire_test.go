package device

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/go-json-experiment/json"
)

// TestValueOnTheWire: a Value is encoded as the codecs encode what it holds, and comes
// back as it was.
func TestValueOnTheWire(t *testing.T) {
	form, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	values := []Value{{}, Bool(true), Bool(false), Text(""), Text("on"), Text("<ä\n\u2028\x00>"), Text(strings.Repeat("x", 300)), Text(strings.Repeat("y", 70000))}
	for _, n := range []float64{0, math.Copysign(0, -1), 1, -1, 21.5, 0.1, 1e21, 1e-7, -1e-9, 1e-10, 65504, 65505, 65536, 1e300, 5e-324, math.MaxFloat32, math.Ldexp(1, -14), math.Ldexp(1, -24), math.Ldexp(3, -24), math.Ldexp(1, -25), math.Ldexp(1023, -24)} {
		values = append(values, Number(n))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		if n := math.Float64frombits(rng.Uint64()); Number(n).Finite() {
			values = append(values, Number(n), Number(float64(float32(n/1e300))), Number(float64(rng.IntN(4096))/64))
		}
	}
	for _, v := range values {
		if !v.Finite() {
			continue
		}
		for _, codec := range []struct {
			name      string
			marshal   func(any) ([]byte, error)
			unmarshal func([]byte, any) error
		}{
			{"JSON", func(v any) ([]byte, error) { return json.Marshal(v) }, func(b []byte, v any) error { return json.Unmarshal(b, v) }},
			{"CBOR", form.Marshal, cbor.Unmarshal},
		} {
			got, err := codec.marshal(v)
			want, wrong := codec.marshal(v.Any())
			if err != nil || wrong != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s of %v: %.80x, %v, want %.80x", codec.name, v, got, err, want)
			}
			var back Value
			if err := codec.unmarshal(got, &back); err != nil || back != v {
				t.Fatalf("%s of %v comes back as %v, %v", codec.name, v, back, err)
			}
		}
	}
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if b, err := Number(n).MarshalJSON(); err == nil {
			t.Errorf("%s", b)
		}
		if b, err := Number(n).MarshalCBOR(); err == nil {
			t.Errorf("%x", b)
		}
	}
}

// TestNotAValue: lists, maps and what is not finite are refused, and integers are numbers.
func TestNotAValue(t *testing.T) {
	var v Value
	for _, text := range []string{"[]", "{}", "[1]", `{"a":1}`, "1e999", ""} {
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s is %v", text, v)
		}
	}
	for _, b := range []string{"", "\x80", "\xa0", "\x41a", "\xf7", "\xf9\x7c\x00", "\xf9\x7e\x00", "\xf9", "\x62a", "\x61\xff", "\xc0\x01", "\x1c"} {
		if err := v.UnmarshalCBOR([]byte(b)); err == nil {
			t.Errorf("%x is %v", b, v)
		}
	}
	for b, want := range map[string]float64{"\x05": 5, "\x18\xff": 255, "\x20": -1, "\x1b\xff\xff\xff\xff\xff\xff\xff\xff": math.MaxUint64} {
		if err := v.UnmarshalCBOR([]byte(b)); err != nil || v != Number(want) {
			t.Errorf("%x is %v, %v", b, v, err)
		}
	}
}
