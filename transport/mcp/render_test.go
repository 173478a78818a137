package mcp

import (
	"bytes"
	"strings"
	"testing"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// TestRender holds what is written by hand against what the codecs write.
func TestRender(t *testing.T) {
	s := New(t.Context(), nil, nil, Implementation{Name: "é", Title: "t", Version: "1"}, "")
	for _, value := range []any{
		map[string]any{"a": 1.5, "b": []any{"x", true, nil}}, struct{}{}, "\x00\"\\\u2028é", strings.Repeat("n", 20), strings.Repeat("n", 21),
		strings.Repeat("n", 22), strings.Repeat("n", 253), strings.Repeat("n", 254), strings.Repeat("n", 70_000),
	} {
		text, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		render := func(codec rpc.Codec, twice bool) []byte {
			var w bytes.Buffer
			if err := (&answer{s.done[codec], value, twice}).Render(codec, &w); err != nil {
				t.Error(err)
			}
			return w.Bytes()
		}
		want := CallResult{Result: s.completed(), Content: []Content{{Type: "text", Text: string(text)}}, Structured: value}
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			var buf bytes.Buffer
			if err := codec.Encode(&buf, want); err != nil {
				t.Fatal(err)
			}
			if got := render(codec, true); !bytes.Equal(got, buf.Bytes()) {
				t.Errorf("%s\n got %.200q\nwant %.200q", codec.ContentType(), got, buf.Bytes())
			}
			once := want
			once.Content = []Content{}
			buf.Reset()
			if err := codec.Encode(&buf, once); err != nil {
				t.Fatal(err)
			}
			if got := render(codec, false); !bytes.Equal(got, buf.Bytes()) {
				t.Errorf("without a text, %s\n got %.200q\nwant %.200q", codec.ContentType(), got, buf.Bytes())
			}
		}
	}
}
