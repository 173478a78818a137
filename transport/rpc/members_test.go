package rpc

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sameJSON fails unless a message that is decoded quickly is one for the library, too, and returns
// whether it is decoded so.
func sameJSON(t interface{ Fatalf(string, ...any) }, b []byte) bool {
	var got, want message
	if !walkJSON(b, &got) {
		return false
	}
	if err := checkJSONBounds(b); err != nil {
		t.Fatalf("%.200q is beyond the bounds: %v", b, err)
	}
	if err := decodeJSON(b, &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%.200q: %+v, and the library says %+v, %v", b, got, want, err)
	}
	return true
}

// TestWalkJSON: nothing is taken that the library refuses, and its values are the library's.
func TestWalkJSON(t *testing.T) {
	bytes := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\{}[]:,.- \t\n0123456789eEu/nrtfalse\x00\x7f\x80\xc3\xff")))
	rapid.Check(t, func(t *rapid.T) {
		b := encode(t, JSON, request{version, anyID().Draw(t, "id"), rapid.String().Draw(t, "method"), tree(3).Draw(t, "params")})
		sameJSON(t, b)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				b[at] = bytes.Draw(t, "byte")
			case 1:
				b = append(b[:at:at], append([]byte{bytes.Draw(t, "more")}, b[at:]...)...)
			default:
				b = append(b[:at], b[min(at+rapid.IntRange(1, 9).Draw(t, "fewer"), len(b)-1):]...)
			}
			sameJSON(t, b)
		}
	})
	const head, deep = `{"jsonrpc":"2.0","id":1,"method":"m","params":`, maxDepth - 1
	for _, value := range []string{
		`1`, `-0`, `-1.5e+30`, `0.10`, `1E9`, `"a\"\\\/\b\f\n\r\tb"`, `"é\\` + "\x7f" + `𝄞"`, `[]`, `[ ]`, `{ }`, ` { "a" : [ 1 , true ] , "b" : null } `, `false`,
		`{"a":{"a":1,"b":{"a":2}},"b":{"a":3}}`, strings.Repeat("[", deep) + strings.Repeat("]", deep),
		"[" + strings.Repeat("0,", maxValues-5) + "0]",
	} {
		if !sameJSON(t, []byte(head+value+"}\n")) {
			t.Errorf("%.60q is not read quickly", value)
		}
	}
	for _, value := range []string{
		``, `-`, `01`, `1.`, `.5`, `1e`, `+1`, `1e+`, `NaN`, `nul`, `"`, `"\x"`, `"\`, `"` + "\x1f" + `"`, `"` + "\xff" + `"`, `"` + "\xed\xa0\x80" + `"`,
		`[1,]`, `[,1]`, `[1 2]`, `[1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:1}`, `{"a":1,"a":2}`, `{"b":{"a":1,"c":0,"a":2}}`, `[{"a":[]},{"a":1,"a":1}]`, `{"é":1,"é":2}`,
		`]`, `}`, `1,"id":2`, `1,"jsonrpc":"2.0"`, `1}{`, `1} x`, `{"\u0061":1,"a":2}`, strings.Repeat("[", deep+1) + strings.Repeat("]", deep+1),
		"[" + strings.Repeat("0,", maxValues) + "0]",
	} {
		if sameJSON(t, []byte(head+value+"}")) {
			t.Errorf("%.60q is taken", value)
		}
	}
}

// FuzzWalk is TestWalkJSON for any bytes.
func FuzzWalk(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameJSON(t, b) })
}
