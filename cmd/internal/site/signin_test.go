package site

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// TestUnderPublicName: under the public name MCP answers, and how to sign in there, and nothing else. Its issuer is the
// name, whatever a request says. No key and no token but those of programs that signed in count.
func TestUnderPublicName(t *testing.T) {
	const name = "board.example.org"
	key := identity.New()
	store, err := access.NewStore(access.Options{
		Site: key.ID(), URL: "https://lan/mcp", SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{key: key, access: store}
	s.messages = web.MCP(nil, func(http.ResponseWriter, *http.Request, rpc.Sender) { t.Error("a stranger is let in") })
	s.config = &config.Site{Name: "board"}
	if len(s.publicRoutes(s.signIns.at.Load())) != 0 || s.signIns.Waiting() != nil || s.signIns.Deny("a") == nil {
		t.Error("there is something before there is a name")
	}
	s.handlePublic("before.example.org")
	h := s.handlePublic(name)
	if url := store.SignInURL(); url != "https://"+name+"/mcp" {
		t.Error(url)
	}
	var open []string
	for _, r := range s.publicRoutes(s.signIns.at.Load()) {
		open = append(open, r.Pattern)
		if r.Signed != nil {
			t.Error("a key may be proved at", r.Pattern)
		}
	}
	slices.Sort(open)
	want := []string{
		"/mcp",
		"GET /.well-known/oauth-authorization-server", "GET /.well-known/oauth-authorization-server/mcp",
		"GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/mcp",
		"GET /.well-known/openid-configuration", "GET /.well-known/openid-configuration/mcp",
		"GET /authorize", "GET /authorize/{id}",
		"GET /mcp/.well-known/oauth-authorization-server", "GET /mcp/.well-known/oauth-protected-resource",
		"GET /mcp/.well-known/openid-configuration",
		"POST /register", "POST /revoke", "POST /token",
	}
	slices.Sort(want)
	if !slices.Equal(open, want) {
		t.Errorf("%q", open)
	}
	ask := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "https://"+name+path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, token := range []string{"", strings.Repeat("x", 43)} {
		var headers []string
		if token != "" {
			headers = []string{"Authorization", "Bearer " + token}
		}
		if w := ask("POST", "/mcp", headers...); w.Code != 401 || !strings.Contains(w.Header().Get("WWW-Authenticate"), `"https://`+name+`/`) {
			t.Errorf("%q: %d %v", token, w.Code, w.Header())
		}
	}
	w := ask("GET", "/.well-known/oauth-authorization-server", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http")
	var said struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Issuer != "https://"+name {
		t.Errorf("%v %q", err, said.Issuer)
	}
	for _, path := range []string{"/", "/healthz", "/help", "/a2a", "/metrics", "/page/session", "/owner", "/.well-known/agent-card.json"} {
		if w := ask("GET", path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
