package mcp_test

import (
	"strings"
	"testing"

	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"
)

// TestUISettings: in both encodings the view is at the tools of a client that declares it well, and a strange
// declaration is no error.
func TestUISettings(t *testing.T) {
	b, _, _ := newSite()
	defer b.end()
	for settings, want := range map[string]bool{
		`{"mimeTypes":["` + view.MIME + `"]}`: true, `{"mimeTypes":["` + view.MIME + `"],"more":[1]}`: true,
		`{}`: false, `null`: false, `true`: false, `7`: false, `"x"`: false, `[]`: false, `{"mimeTypes":7}`: false, `{"mimeTypes":[7]}`: false,
	} {
		say := message("tools/list", "", `{"extensions":{"io.modelcontextprotocol/ui":`+settings+`}}`)
		for codec, body := range map[rpc.Codec][]byte{rpc.JSON: []byte(say), rpc.CBOR: toCBOR(t, say)} {
			var got string
			b.say(t.Context(), codec, body, local, nil, func(s string) { got += s })
			if strings.Contains(got, view.URI) != want || !strings.Contains(got, "read_points") {
				t.Errorf("%T %s: %.300q", codec, settings, got)
			}
		}
	}
}
