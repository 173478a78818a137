package view_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// shown are the tools that have the view.
var shown = []string{
	"explain_point", "read_history", "read_points", "release_output", "set_level", "site_status", "switch_output",
}

// start starts a site that serves all revisions.
func start(t *testing.T) *adaptertest.Site {
	s := adaptertest.New(t, nil)
	newest := mcp.New(s.Ending, s.Node, s.Tools, mcp.Implementation{Name: "test", Version: "1"}, "")
	older := legacy.New(s.Node, s.Tools, "test", "1", "")
	t.Cleanup(older.Close)
	s.Serve(t, append(web.PublicRoutes(), web.MCP(rpc.NewDispatcher(newest.Methods()), older.ServeHTTP)))
	return s
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client that declares settings of the extension; nil for none.
func connect(t *testing.T, s *adaptertest.Site, token, revision string, settings map[string]any) *sdk.ClientSession {
	t.Helper()
	o := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	if settings != nil {
		o.Capabilities.AddExtension(view.Extension, settings)
	}
	c, err := sdk.NewClient(
		&sdk.Implementation{Name: "client", Version: "1"}, o,
	).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true,
	}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(revision, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var declared = map[string]any{"mimeTypes": []string{"text/html", view.MIME}}

// TestOffer: in every revision a client that declares the extension has the view at its tools, and one that does not,
// of the same principal at the same time, has not.
func TestOffer(t *testing.T) {
	s := start(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		size := map[bool]int{}
		for name, settings := range map[string]map[string]any{
			"with": declared, "without": nil, "another type": {
				"mimeTypes": []string{"text/html"},
			}, "no list": {"mimeTypes": 7}, "empty": {},
		} {
			c := connect(t, s, adaptertest.SiteToken, revision, settings)
			if got := c.InitializeResult().ProtocolVersion; got != revision {
				t.Errorf("%s is spoken, and not %s", got, revision)
			}
			list, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(revision, name, err)
			}
			var has []string
			for _, tool := range list.Tools {
				text, _ := json.Marshal(tool)
				size[name == "with"] += len(text)
				if ui, ok := tool.Meta["ui"].(map[string]any); ok && len(ui) == 1 && ui["resourceUri"] == view.URI {
					has = append(has, tool.Name)
				} else if tool.Meta != nil {
					t.Errorf("%s: the _meta of %s is %v", revision, tool.Name, tool.Meta)
				}
			}
			slices.Sort(has)
			if want := map[bool][]string{true: shown}[name == "with"]; !slices.Equal(has, want) {
				t.Errorf("%s, %s: the view is at %v", revision, name, has)
			}
			resources, err := c.ListResources(t.Context(), nil)
			if err != nil || slices.ContainsFunc(resources.Resources, func(r *sdk.Resource) bool { return view.Is(r.URI) }) {
				t.Errorf("%s: the view is in the list of resources, %v", revision, err)
			}
		}
		t.Logf("%s: the view takes %d bytes of the list", revision, size[true]-size[false]/4)
	}
}

// TestRead: the page is there for every caller of one of its tools, under the names of earlier versions too, and for
// nobody else.
func TestRead(t *testing.T) {
	s := start(t)
	reader, _ := s.Token(t, "reader", "read greenhouse/temperature")
	asker, _ := s.Token(t, "asker", "ask helper")
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for token, may := range map[string]bool{reader: true, asker: false} {
			c := connect(t, s, token, revision, nil)
			for _, uri := range []string{view.URI, "ui://agentsite/view/0"} {
				r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if !may {
					if err == nil {
						t.Errorf("%s: it is read by a caller of no tool", revision)
					}
					continue
				}
				if err != nil || len(r.Contents) != 1 {
					t.Fatal(revision, err)
				}
				got := r.Contents[0]
				meta, _ := json.Marshal(got.Meta)
				if got.URI != uri || got.MIMEType != "text/html;profile=mcp-app" || got.Text != view.HTML || string(
					meta,
				) != `{"ui":{"prefersBorder":true}}` {
					t.Errorf("%s: %s %s %d bytes %s", revision, got.URI, got.MIMEType, len(got.Text), meta)
				}
			}
			if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "ui://agentsite/other"}); err == nil {
				t.Errorf("%s: another page is read", revision)
			}
		}
	}
}

// TestStructured: what the view shows reaches it, though its host wants no text.
func TestStructured(t *testing.T) {
	c := connect(t, start(t), adaptertest.SiteToken, "2026-07-28", declared)
	for text, want := range map[string]int{"": 1, "none": 0} {
		p := &sdk.CallToolParams{Name: "site_status", Arguments: map[string]any{}}
		if text != "" {
			p.Meta = sdk.Meta{"agentsite/text": text}
		}
		r, err := c.CallTool(t.Context(), p)
		if err != nil || r.StructuredContent == nil || len(r.Content) != want {
			t.Errorf("%q: %v, %d texts, %v", text, r.StructuredContent, len(r.Content), err)
		}
	}
}
