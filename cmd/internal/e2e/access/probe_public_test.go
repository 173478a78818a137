//go:build e2e

package access

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/acts"
)

// TestProbePublic asks a site under its public name for everything that it serves elsewhere, also with what counts
// there, and gets none of it.
func TestProbePublic(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	const name = "board.example.org"
	p := startProbed(t, true, "public: "+name, `public_listen: "127.0.0.1:0"`, "proxies: [127.0.0.1]")
	var public []string // routes
	var at string
	for _, c := range p.routes.Carriers {
		if c.Kind == acts.PublicCarrier && strings.Contains(c.Address, "127.0.0.1") {
			at, public = strings.Replace(c.Address, "https://", "http://", 1), c.Routes
		}
	}
	if at == "" || len(public) == 0 {
		t.Fatalf("%+v", p.routes.Carriers)
	}
	how := p.useless(p.ExpiredToken(t), strings.Repeat("0", 64))
	how["the folder's token"] = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p.Token) }
	out, err := p.CLI(t, "token", "add", "near", "read *", "--json")
	_, near, _ := strings.Cut(out, `"token":"`)
	if near, _, _ = strings.Cut(near, `"`); err != nil || len(near) != 64 {
		t.Fatal(out, err)
	}
	how["a token"] = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+near) }
	how["a session"] = func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+p.Token)
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	client := &http.Client{CheckRedirect: stay}
	defer client.CloseIdleConnections()
	ask := func(what string, with func(*http.Request), want []int, method, path, body string, headers ...string) {
		t.Helper()
		req := harness.NewRequest(t, method, at+path, body, append(headers, "X-Forwarded-For", "198.51.100.7")...)
		req.Host = name
		with(req)
		if status, answer := p.ask(t, client, req); !slices.Contains(want, status) {
			t.Errorf("%s %s with %s: %s", method, path, what, answer)
		}
	}
	for what, with := range how {
		for _, c := range p.routes.Carriers {
			for _, pattern := range c.Routes {
				verb, path, ok := strings.Cut(pattern, " ")
				if !ok {
					verb, path = "POST", pattern
				}
				path = wildcards.Replace(path)
				if !slices.Contains(public, pattern) && !strings.HasPrefix(path, "/.well-known/oauth-") {
					ask(what, with, []int{404}, verb, path, "{}", "Content-Type", "application/json")
				}
			}
		}
		for _, m := range p.messages(t) {
			ask(what, with, []int{401}, "POST", "/mcp", m.body, m.headers...)
		}
	}
	t.Logf("%d probes", p.probes)
	if p.probes < 1000 {
		t.Error("this shows too little")
	}
}
