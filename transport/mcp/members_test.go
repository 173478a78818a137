package mcp

import (
	"bytes"
	"reflect"
	"testing"

	"agentsite/transport/rpc"

	"pgregory.net/rapid"
)

// sameParams fails unless parameters that a struct decodes by itself are decoded by the codec to the
// same, and returns whether it decodes them.
func sameParams[P any, PP params[P]](t interface{ Fatalf(string, ...any) }, raw rpc.Raw) bool {
	var got, want P
	if !raw.Walk(PP(&got)) {
		return false
	}
	any(&got).(interface{ moveMeta() }).moveMeta()
	if err := raw.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
		text, _ := raw.JSONText()
		t.Fatalf("%s: %+v, and the codec says %+v, %v", text, got, want, err)
	}
	return true
}

// moveMeta has the _meta where the codecs put it.
func (p *Params) moveMeta() {
	if p.Meta == &p.own {
		p.Meta, p.own = new(p.own), RequestMeta{}
	}
}

func sameAsCodec(t interface{ Fatalf(string, ...any) }, raw rpc.Raw) {
	sameParams[callParams](t, raw)
	sameParams[readParams](t, raw)
	sameParams[listParams](t, raw)
	sameParams[taskParams](t, raw)
}

// someParams draws parameters that are nearly usual.
func someParams() *rapid.Generator[any] {
	names := []string{
		"_meta", "name", "arguments", "uri", "cursor", "inputResponses", "requestState", "title", "version", "x", "Name",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo",
		"io.modelcontextprotocol/logLevel", "progressToken", "agentsite/text", "agentsite/values", "agentsite/via", "elicitation",
	}
	leaf := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "read_points", rpc.Revision, "none", "a\"\\\n", "é"}), func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, 1, -2.5, []any{}, []any{"a"}, map[string]any{}}))
	value := func(in *rapid.Generator[any]) *rapid.Generator[any] {
		object := rapid.Map(rapid.MapOfN(rapid.SampledFrom(names), in, 0, 4), func(m map[string]any) any { return m })
		return rapid.OneOf(leaf, object, object, object)
	}
	return value(value(value(leaf)))
}

// TestMembers: parameters are decoded as by the codecs, in both encodings.
func TestMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := someParams().Draw(t, "params")
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			var b bytes.Buffer
			if err := codec.Encode(&b, map[string]any{"params": params}); err != nil {
				t.Fatal(err)
			}
			text := b.Bytes()
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("\"\\{}[]:, 0-e.ux\x00\xa0\xa1\x61\xf6\xff")).Draw(t, "byte")
			}
			var m struct {
				Params rpc.Raw `json:"params"`
			}
			if codec.Decode(text, &m) == nil {
				sameAsCodec(t, m.Params)
			}
			if codec == rpc.JSON {
				sameAsCodec(t, rpc.RawJSON(text))
			}
		}
	})
	usual := `{"name":"read_points","arguments":{"points":["a/b"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"a","title":"b","version":"c"},"agentsite/text":"none"}}`
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		var b bytes.Buffer
		if err := codec.Encode(&b, map[string]any{"params": rpc.RawJSON([]byte(usual))}); err != nil {
			t.Fatal(err)
		}
		var m struct {
			Params rpc.Raw `json:"params"`
		}
		if err := codec.Decode(b.Bytes(), &m); err != nil || !sameParams[callParams](t, m.Params) {
			t.Errorf("%s is not decoded quickly, %v", usual, err)
		}
	}
}
