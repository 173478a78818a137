package web_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

const (
	fuzzHost   = "127.0.0.1:8473"
	fuzzToken  = "0123456789abcdef"
	fuzzSecret = "A-READING-OF-THE-SITE" // in everything that a token is needed for
)

// secrets is an agent whose every answer holds the secret.
type secrets struct{}

func (secrets) Tools() []tools.Tool {
	return []tools.Tool{{Name: "read", Description: fuzzSecret, Input: []byte(`{"type":"object"}`)}}
}
func (secrets) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	var in struct {
		N float64 `json:"n"`
	}
	if err := c.Args.Decode(&in); err != nil {
		return tools.Result{}, device.Faultf(device.Invalid, "read: %w", err)
	}
	return tools.Result{Value: map[string]any{"secret": fuzzSecret, "n": in.N}}, nil
}
func (secrets) Resources(context.Context, agents.Principal) ([]tools.Resource, error) {
	return []tools.Resource{{URI: "x:y", Name: fuzzSecret}}, nil
}
func (secrets) Templates(context.Context, agents.Principal) ([]tools.Template, error) {
	return []tools.Template{{URITemplate: "x:{y}", Name: fuzzSecret}}, nil
}
func (secrets) ReadResource(_ context.Context, _ agents.Principal, uri string) ([]tools.ResourceContent, error) {
	return []tools.ResourceContent{{URI: uri, Text: fuzzSecret}}, nil
}
func (secrets) Prompts(context.Context, agents.Principal) ([]tools.Prompt, error) {
	return []tools.Prompt{{Name: "p", Title: fuzzSecret}}, nil
}
func (secrets) Prompt(context.Context, agents.Principal, string, map[string]string, tools.Exchange) (tools.PromptResult, error) {
	return tools.PromptResult{Description: fuzzSecret}, nil
}
func (secrets) Complete(context.Context, agents.Principal, tools.Reference, string, string) (tools.Completions, error) {
	return tools.Completions{Values: []string{fuzzSecret}}, nil
}

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

func fuzzSite() (http.Handler, *legacy.Server) {
	site := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return "x:" + a }), Token: fuzzToken, Tools: []tools.Agent{secrets{}}})
	catalog := tools.New(site, site)
	older := legacy.New(site, catalog, "fuzz", "1", fuzzSecret)
	newest := mcp.New(context.Background(), site, catalog, mcp.Implementation{Name: "fuzz", Version: "1"}, fuzzSecret)
	older.Library, newest.Library = secrets{}, secrets{}
	dispatcher := rpc.NewDispatcher(newest.Methods())
	return web.Handler(web.Options{
		Hosts:   []string{fuzzHost},
		Callers: site,
		Routes: append(web.PublicRoutes(),
			web.MCP(dispatcher, older.ServeHTTP),
			web.Route{Pattern: "GET /metrics", Admission: web.Principals, Serve: func(w http.ResponseWriter, _ *http.Request, _ web.Caller) { io.WriteString(w, fuzzSecret) }}),
	}), older
}

// FuzzHTTP sends any bytes to a site's HTTP listener. It never panics, answers in time, never
// answers 5xx other than 503, and returns nothing of the site without its name and its token.
func FuzzHTTP(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	head := func(lines ...string) string {
		return strings.Join(append([]string{"Host: " + fuzzHost, "Authorization: Bearer " + fuzzToken, "Content-Type: application/json",
			"Accept: application/json, text/event-stream"}, lines...), "\r\n")
	}
	modern := "Mcp-Protocol-Version: 2026-07-28"
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"n":1},` + meta + `}}`
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x:y"]},` + meta + `}}`
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`
	for _, seed := range []struct{ method, path, headers, body string }{
		{"POST", "/mcp", head(modern, "Mcp-Method: tools/call", "Mcp-Name: read"), call},
		{"POST", "/mcp", strings.Replace(head(modern, "Mcp-Method: tools/call", "Mcp-Name: read"), fuzzToken, "nope", 1), call},
		{"POST", "/mcp?token=" + fuzzToken, "Host: " + fuzzHost + "\r\nContent-Type: application/json\r\n" + modern, call},
		{"POST", "/mcp", head(modern, "Mcp-Method: tools/list"), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`},
		{"POST", "/mcp", head(modern, "Mcp-Method: subscriptions/listen"), listen},
		{"POST", "/mcp", head(), initialize},
		{"POST", "/mcp", head("Mcp-Session-Id: x"), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`},
		{"DELETE", "/mcp", head("Mcp-Session-Id: x"), ""},
		{"GET", "/mcp", head("Mcp-Session-Id: x"), ""},
		{"POST", "/mcp", strings.Replace(head(modern), "application/json", "application/cbor", 1), "\xa3gjsonrpcc2.0bid\x01fmethodedo"},
		{"GET", "/metrics", head(), ""},
		{"GET", "/metrics", "Host: " + fuzzHost, ""},
		{"GET", "/", "Host: " + fuzzHost + "\r\nOrigin: null", ""},
		{"CONNECT", "//mcp/../mcp", "Host: " + fuzzHost, ""},
	} {
		f.Add(seed.method, seed.path, seed.headers, seed.body)
	}
	h, older := fuzzSite()
	f.Cleanup(older.Close)
	f.Fuzz(func(t *testing.T, method, path, headers, body string) {
		if len(headers) > 16<<10 || strings.Contains(headers, "\n\r\n") || strings.Contains(headers, "\n\n") {
			return // net/http does not let it as far as here
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + path + " HTTP/1.1\r\n" + headers + "\r\n\r\n")))
		if err != nil {
			return
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		begun := time.Now()
		h.ServeHTTP(w, r.WithContext(ctx))
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if w.Code >= 500 && w.Code != 503 {
			t.Errorf("it answered %d %s", w.Code, w.Body)
		}
		proven := r.Host == fuzzHost && slices.ContainsFunc(r.Header["Authorization"], func(v string) bool {
			return len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") && v[7:] == fuzzToken
		})
		if !proven && strings.Contains(w.Body.String(), fuzzSecret) {
			t.Errorf("it told this without the token: %d %s", w.Code, w.Body)
		}
	})
}
