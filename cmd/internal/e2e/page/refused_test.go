//go:build e2e

// Package page tests the page of a site, and that of all sites of a person, with Chromium and the real
// program.
package page

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// TestRefused: a link counts once; other hosts, other origins and other pages of a browser get nothing, nor
// does anybody without a session. It is so for a site's own page as for the page of all sites.
func TestRefused(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	all := openPage(t, harness.NewPerson(t), demo.Folder)
	for _, link := range []string{demo.Page, all.Link} {
		base, key, ok := strings.Cut(link, "/#k=")
		if !ok {
			t.Fatalf("the link is %q", link)
		}
		_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
		begin := `{"key":"` + key + `"}`
		ask := func(what string, want int, method, path, body string, headers ...string) string {
			t.Helper()
			req := harness.NewRequest(t, method, "http://127.0.0.1:"+port+path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
			if h := req.Header.Get("Host"); h != "" {
				req.Host = h
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			answer, _ := io.ReadAll(res.Body)
			if res.StatusCode != want {
				t.Errorf("%s, %s: %d %s", base, what, res.StatusCode, answer)
			}
			return string(answer)
		}
		const exchange = "/page/session"
		ask("another name of this machine", 403, "POST", exchange, begin, "Host", "rebound.example:"+port)
		ask("another port", 403, "POST", exchange, begin, "Host", "localhost:1")
		ask("another origin", 403, "POST", exchange, begin, "Origin", "http://evil.example")
		ask("another port's page", 403, "POST", exchange, begin, "Origin", "http://localhost:1", "Sec-Fetch-Site", "same-site")
		ask("another site's page", 403, "POST", exchange, begin, "Sec-Fetch-Site", "cross-site")
		ask("a file's page", 403, "POST", exchange, begin, "Origin", "null", "Sec-Fetch-Site", "cross-site")
		ask("a form", 400, "POST", exchange, begin, "Content-Type", "text/plain")
		ask("the key in the path", 405, "POST", exchange+"/"+key, "{}")
		answer := ask("the key", 200, "POST", exchange, begin, "Origin", base, "Sec-Fetch-Site", "same-origin")
		ask("the key again", 401, "POST", exchange, begin)
		_, token, _ := strings.Cut(answer, `"token":"`)
		token, _, _ = strings.Cut(token, `"`)
		_, path, _ := strings.Cut(answer, `"url":"`)
		path, _, _ = strings.Cut(path, `"`)
		call := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "site_status", "Accept", "application/json"}
		status := harness.ToolCall("site_status", "{}")
		as := func(bearer string, more ...string) []string {
			return append(append(call, "Authorization", "Bearer "+bearer), more...)
		}
		if says := ask("a session", 200, "POST", path, status, as(token)...); !strings.Contains(says, "uptime_seconds") {
			t.Errorf("%s: %s", base, says)
		}
		ask("no session", 401, "POST", path, status, call...)
		ask("the key of a link as a session", 401, "POST", path, status, as(key)...)
		ask("a session from another page", 403, "POST", path, status, as(token, "Origin", "http://evil.example")...)
		ask("a session from another port", 403, "POST", path, status, as(token, "Sec-Fetch-Site", "same-site")...)
		ask("a session by another name", 403, "POST", path, status, as(token, "Host", "rebound.example:"+port)...)
		ask("a preflight", 403, "OPTIONS", path, "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST")
		if says := ask("the document", 200, "GET", "/", ""); strings.Contains(says, "demo") || strings.Contains(says, "greenhouse") {
			t.Errorf("%s: the document tells of the site: %s", base, says)
		}
	}
}
