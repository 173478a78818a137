//go:build e2e

package harness

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
)

// StartUnclaimed starts a site with a relay that serves HTTPS and has no owner, and returns its
// invitation.
func StartUnclaimed(t testing.TB, data string, more ...string) (*Site, access.Invitation) {
	t.Helper()
	r := StartHTTPS(t, data, more...)
	return r, r.Invitation(t)
}

// StartHTTPS is StartUnclaimed with a data folder whose site may have an owner.
func StartHTTPS(t testing.TB, data string, more ...string) *Site {
	t.Helper()
	return StartHTTPSAt(t, data, "127.0.0.1:0", more...)
}

// StartHTTPSAt is StartHTTPS with an address for HTTPS.
func StartHTTPSAt(t testing.TB, data, https string, more ...string) *Site {
	t.Helper()
	config := "site: { name: shed }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0 }\n" + strings.Join(more, "\n") + "\n"
	return StartIn(t, data, config, nil, Need(t, "the program", Program), "run", "--listen-https", https)
}

// invitationPattern finds an invitation in a text.
var invitationPattern = regexp.MustCompile(`agentsite://\S+`)

// Invitation returns the invitation in the site's data folder.
func (r *Site) Invitation(t testing.TB) access.Invitation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Folder, state.ClaimFile))
	if err != nil {
		t.Fatal(err)
	}
	i, err := access.ParseInvitation(invitationPattern.FindString(string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return i
}

// Access returns the site's owners, grants and tokens, as it lists them to its own machine.
func (r *Site) Access(t testing.TB) (all acts.Access) {
	t.Helper()
	c, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	says, err := c.Owner.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return says.Access
}

// Owners returns the keys that own the site.
func (r *Site) Owners(t testing.TB) (all []string) {
	t.Helper()
	for _, o := range r.Access(t).Owners {
		all = append(all, o.DID)
	}
	return all
}

// BeginSession opens a session of MCP 2025-06-18 with a token, and returns its ID.
func (r *Site) BeginSession(t *testing.T, token string) string {
	t.Helper()
	req := NewRequest(t, "POST", r.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
		"Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	id := res.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatal("no session:", res.Status)
	}
	return id
}

// Routes returns the site's carriers, routes and methods.
func (r *Site) Routes(t *testing.T) (all acts.Routes) {
	t.Helper()
	owner, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	all, err = ownerclient.Call(t.Context(), owner.Owner, acts.RoutesAct, acts.None{})
	if err != nil || len(all.Methods) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// NewRequest returns a request with headers in pairs of names and values.
func NewRequest(t testing.TB, verb, url, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(verb, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// ExpiredToken returns a token of the site's that has expired.
func (r *Site) ExpiredToken(t *testing.T) string {
	t.Helper()
	if _, err := r.CLI(t, "clock", "--set"); err != nil {
		t.Fatal(err)
	}
	secret, err := r.CLI(t, "token", "add", "brief", "read *, set *, stop", "--until", "5s")
	if err != nil {
		t.Fatal(err)
	}
	secret = strings.TrimSpace(secret)
	WaitFor(t, time.Minute, "the token ends", func() bool {
		code, answer := r.Post(t, ToolCall("read_points", "{}"), "Authorization", "Bearer "+secret)
		return code == 401 && strings.Contains(answer, "has ended")
	})
	return secret
}

// AddToken adds a token with permissions, and returns it and a client that uses it.
func (r *Site) AddToken(t *testing.T, name, words string, more ...string) (secret string, with *client.Client) {
	t.Helper()
	if _, err := r.CLI(t, "clock", "--set"); err != nil { // as whatever synchronises clocks does elsewhere
		t.Fatal(err)
	}
	out, err := r.CLI(t, append([]string{"token", "add", name, words}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(TempDir(t), "token")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), URL: r.URL, TokenFile: file, Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return strings.TrimSpace(out), c.Client
}
