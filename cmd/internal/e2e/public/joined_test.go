//go:build e2e && linux

package public

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"
	"agentsite/discovery/bed"
)

// TestPublicSignIn: from a relay and a site behind two routers, both with empty folders, to tools called by clients
// that know the site's public URL alone, each on a machine of its own, once the site's owner allowed it. Of the owner
// it needs nothing but that, and of the relay's to list the site.
func TestPublicSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &site{on: w.home(), data: harness.TempDir(t)}
	r := w.relay(zone)
	w.run(s, "on", r.Addresses)
	w.permit(s.key.ID())
	name := s.label(t) + "." + zone
	s.certified(t, name)
	// The first signer becomes the owner.
	lan := strings.TrimSpace((&place{Site: s.Site}).owner(t, "token", "add", "first", "read *"))

	root, token := w.root(), ""
	var last *place
	for _, c := range []struct {
		name    string
		signsIn func(*testing.T, *place)
	}{
		{"TypeScript 1", func(t *testing.T, p *place) { p.byTypeScript(t, "1", "lamp") }},
		{"TypeScript 2", func(t *testing.T, p *place) { p.byTypeScript(t, "2", "lamp") }},
		{"AI SDK", func(t *testing.T, p *place) { p.byAISDK(t, "lamp") }},
		{"Inspector", func(t *testing.T, p *place) { p.byInspector(t, "lamp") }},
		{"mcp-remote", func(t *testing.T, p *place) { p.byRemote(t, "lamp") }},
		{"authorization suite", func(t *testing.T, p *place) { p.byAuthorizationSuite(t) }},
		{"Go", func(t *testing.T, p *place) { token = p.byGo(t, "lamp") }},
		{"server suite", func(t *testing.T, p *place) {
			npm.RunSuite(t, strings.TrimSuffix(p.url, "/mcp"), token, p.http.Transport)
		}},
	} {
		last = &place{Site: s.Site, url: "https://" + name + "/mcp", certificate: root, on: w.stranger()}
		last.http = w.browser(last.on, root, map[string]string{name + ":443": r.IP + ":443"})
		t.Run(c.name, func(t *testing.T) { c.signsIn(t, last) })
	}
	w.onlyThere(t, s, last, token, lan)
}

// onlyThere: a token of a sign-in counts under the public name alone, those of the site's own network do not count
// there, and a revoked one counts nowhere.
func (w *world) onlyThere(t *testing.T, s *site, p *place, token, lan string) {
	t.Helper()
	asks := func(on, url, token string) string {
		t.Helper()
		code, err := w.pings(on, p.certificate, url, token)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if code := asks(p.on, p.url, token); code == "401" || code == "403" {
		t.Errorf("its token under the public name: %s", code)
	}
	if code := asks(s.on, s.URL+"/mcp", token); code != "401" {
		t.Errorf("its token on the site's machine: %s", code)
	}
	for what, token := range map[string]string{"of the site's machine": s.Token, "of its network": lan} {
		if code := asks(p.on, p.url, token); code != "401" {
			t.Errorf("the token %s under the public name: %s", what, code)
		}
	}
	if code := asks(s.on, s.URL+"/mcp", s.Token); code == "401" || code == "403" {
		t.Errorf("the site's own token on its machine: %s", code)
	}
	p.owner(t, "revoke", "go-sdk")
	if code := asks(p.on, p.url, token); code != "401" {
		t.Errorf("a revoked token: %s", code)
	}
}

// pings calls a site from a host with a token, and returns the status of the answer.
func (w *world) pings(on, root, url, token string) (status string, err error) {
	w.t.Helper()
	a, err := w.curl(on, root, "-X", "POST", "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream",
		"-H", "Authorization: Bearer "+token, "-d", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, url)
	return a.code, err
}

// browser returns a client on a host that trusts a root, and knows the addresses of names. "localhost" is the host,
// too.
func (w *world) browser(on, root string, names map[string]string) *http.Client {
	w.t.Helper()
	return newBrowser(w.t, root, func(ctx context.Context, network, address string) (net.Conn, error) {
		if at, ok := names[address]; ok {
			address = at
		}
		return dialFrom(ctx, on, network, strings.Replace(address, "localhost:", "127.0.0.1:", 1))
	})
}

// dialFrom connects to an address from a host.
func dialFrom(ctx context.Context, on, network, address string) (conn net.Conn, err error) {
	err = bed.Inside(on, func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
