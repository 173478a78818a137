package web

import (
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeaderRoundTrip: whatever a name is, it comes back from a header that any
// server and proxy lets through.
func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(
			rapid.String(), rapid.StringMatching(`[ -~]{0,40}`), rapid.StringMatching(`=\?base64\?[A-Za-z0-9+/=]{0,12}(\?=)?`),
			rapid.StringMatching(`[ \t]{0,2}[a-z]{0,3}[ \t]{0,2}`),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		).Draw(t, "value")
		sent := encodeHeader(v)
		for i := range len(sent) {
			if sent[i] < ' ' || sent[i] > '~' {
				t.Fatalf("%q goes out as %q", v, sent)
			}
		}
		if sent != "" && (sent[0] == ' ' || sent[len(sent)-1] == ' ') {
			t.Fatalf("%q goes out as %q, which loses its ends", v, sent)
		}
		h := http.Header{}
		h.Set("Mcp-Name", sent)
		if got := mirror(h).Values("Mcp-Name"); len(got) != 1 || got[0] != v {
			t.Fatalf("%q goes out as %q and comes back as %q", v, sent, got)
		}
	})
}

func TestMirror(t *testing.T) {
	for _, tt := range []struct {
		name      string
		raw, want []string
	}{
		{"missing", nil, nil},
		{"plain", []string{"tools/call"}, []string{"tools/call"}},
		{"spaces around", []string{"  x\t"}, []string{"x"}},
		{"encoded", []string{"=?base64?w7w=?="}, []string{"ü"}},
		{"encoded without need", []string{"=?base64?eA==?="}, []string{"x"}},
		{"badly encoded is missing", []string{"=?base64?%%?="}, nil},
		{"without its end it is itself", []string{"=?base64?eA=="}, []string{"=?base64?eA=="}},
		{"not ASCII is missing", []string{"ü"}, nil},
		{"control characters are missing", []string{"a\x01b"}, nil},
		{"twice stays twice", []string{"a", "a"}, []string{"a", "a"}},
	} {
		if got := (mirror{"Mcp-Name": tt.raw}).Values("Mcp-Name"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
