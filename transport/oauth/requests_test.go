package oauth

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/transport/web/outbound"
)

// TestRequests: which requests wait, and what clients are told about the others, with the issuer and their state.
func TestRequests(t *testing.T) {
	set := func(name string, values ...string) func(url.Values) { return func(v url.Values) { v[name] = values } }
	for name, tt := range map[string]struct {
		change func(url.Values)
		code   string // "" for one that waits
	}{
		"no resource":            {set("resource"), ""},
		"slash":                  {set("resource", testBase+"/mcp/"), ""},
		"upper case":             {set("resource", "HTTPS://GARDEN.example.ORG/mcp"), ""},
		"origin":                 {set("resource", testBase), ""},
		"origin with a slash":    {set("resource", testBase+"/"), ""},
		"foreign":                {set("resource", "https://evil.example/mcp"), "invalid_target"},
		"begins alike":           {set("resource", testBase+".evil.example/mcp"), "invalid_target"},
		"path in another case":   {set("resource", testBase+"/MCP"), "invalid_target"},
		"another port":           {set("resource", testBase+":8443/mcp"), "invalid_target"},
		"one of two":             {set("resource", testBase+"/mcp", "https://evil.example"), "invalid_target"},
		"no scope":               {set("scope"), ""},
		"unknown scope":          {set("scope", "openid mcp:everything offline_access"), ""},
		"no state":               {set("state"), ""},
		"response_mode":          {set("response_mode", "query"), ""},
		"fragment":               {set("response_mode", "fragment"), "invalid_request"},
		"token":                  {set("response_type", "token"), "unsupported_response_type"},
		"no response_type":       {set("response_type"), "unsupported_response_type"},
		"no challenge":           {set("code_challenge"), "invalid_request"},
		"plain":                  {set("code_challenge_method", "plain"), "invalid_request"},
		"no method":              {set("code_challenge_method"), "invalid_request"},
		"short challenge":        {set("code_challenge", "x"), "invalid_request"},
		"challenge of something": {set("code_challenge", strings.Repeat("=", 43)), "invalid_request"},
		"prompt none":            {set("prompt", "none"), "consent_required"},
		"request object":         {set("request", "e30"), "request_not_supported"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id, _ := r.register(t, claude)
			v := authorizing(id)
			tt.change(v)
			w := r.do("GET", "/authorize?"+v.Encode(), "", nil)
			if tt.code == "" {
				if w.Code != http.StatusSeeOther || len(r.Waiting()) != 1 {
					t.Error(w.Code, r.Waiting())
				}
				return
			}
			to := refusedTo(t, w)
			got := to.Query()
			if got.Get("error") != tt.code {
				t.Fatal(to)
			}
			if to.Host != "claude.ai" || got.Get("iss") != testBase || got.Get("state") != v.Get("state") || len(r.Waiting()) != 0 {
				t.Error(to)
			}
		})
	}
	r := newRig(t)
	id, _ := r.register(t, claude)
	for _, query := range []string{"", "client_id=" + id, authorizing(id).Encode() + "&state=2", "%zz", authorizing(id).Encode() + "&redirect_uri=" + url.QueryEscape(callback)} {
		if w := r.do("GET", "/authorize?"+query, "", nil); query != "client_id="+id && (w.Code != 400 || w.Header().Get("Location") != "") {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
	page := r.start(t, authorizing(id))
	if err := r.Deny(r.Waiting()[0].Handle); err != nil {
		t.Fatal(err)
	}
	if v := r.sentBack(t, page); v.Get("error") != "access_denied" || v.Get("iss") != testBase || v.Get("state") != "a b" || v.Get("code") != "" {
		t.Error(v)
	}
}

// refusedTo returns the link by which a page that refuses a request leads back to the client. No browser follows it by
// itself: whoever registers a client would lead people from the site's URL to theirs.
func refusedTo(t *testing.T, w *httptest.ResponseRecorder) *url.URL {
	t.Helper()
	_, link, _ := strings.Cut(w.Body.String(), `<a href="`)
	link, _, ok := strings.Cut(link, `"`)
	to, err := url.Parse(html.UnescapeString(link))
	if w.Code != http.StatusBadRequest || !ok || err != nil || w.Header().Get("Location") != "" || strings.Contains(w.Body.String(), "http-equiv") {
		t.Fatal(w.Code, w.Header(), w.Body, err)
	}
	return to
}

// TestTokenResource: the token endpoint takes a resource as the authorization endpoint does.
func TestTokenResource(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	page := r.start(t, authorizing(id))
	r.allow(t, "claude", "read *")
	form := codeForm(id, r.sentBack(t, page).Get("code"))
	form.Set("resource", "https://evil.example/mcp")
	if status, v := r.tokens(t, form); status != 400 || v["error"] != "invalid_target" {
		t.Error(status, v)
	}
	for _, grant := range []string{"", "password", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"} {
		form.Set("resource", testBase)
		form.Set("grant_type", grant)
		if status, v := r.tokens(t, form); status != 400 || v["error"] != "unsupported_grant_type" {
			t.Error(status, v)
		}
	}
	form.Set("grant_type", "authorization_code")
	form.Add("code", "another")
	if status, v := r.tokens(t, form); status != 400 || v["error"] != "invalid_request" {
		t.Error(status, v)
	}
	if w := r.do("POST", "/token", `{"grant_type":"authorization_code"}`, func(q *http.Request) { q.Header.Set("Content-Type", "application/json") }); w.Code != 400 {
		t.Error(w.Code)
	}
	if w := r.do("GET", "/token", "", nil); w.Code != 405 {
		t.Error(w.Code)
	}
	for id, code := range map[string]string{"dcr.x.y": "invalid_client", "x": "invalid_client", "": "invalid_request"} {
		form := codeForm(id, "x")
		if _, v := r.tokens(t, form); v["error"] != code {
			t.Errorf("%q: %v", id, v)
		}
	}
}

// TestMetadata: every path at which a client looks has the same document, and pages of any origin may read it.
func TestMetadata(t *testing.T) {
	r := newRig(t)
	documents := map[string][]string{
		"oauth-protected-resource":   {"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp/", "/mcp/.well-known/oauth-protected-resource"},
		"oauth-authorization-server": {"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp", "/mcp/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/openid-configuration/mcp", "/mcp/.well-known/openid-configuration"},
	}
	for name, paths := range documents {
		first := ""
		for _, path := range paths {
			for _, forged := range []string{"", "evil.example"} { // no header makes another URL
				w := r.do("GET", path, "", func(q *http.Request) {
					if forged != "" {
						q.Header.Set("X-Forwarded-Host", forged)
						q.Header.Set("Forwarded", "host="+forged)
						q.Header.Set("Origin", "https://"+forged)
						q.Header.Set("Sec-Fetch-Site", "cross-site")
					}
				})
				if first == "" {
					first = w.Body.String()
				}
				if w.Code != 200 || w.Body.String() != first || (w.Header().Get("Access-Control-Allow-Origin") == "*") != (forged != "") {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
			if w := r.do("HEAD", path, "", nil); w.Code != 200 {
				t.Errorf("HEAD %s: %d", path, w.Code)
			}
			w := r.do("OPTIONS", path, "", func(q *http.Request) {
				q.Header.Set("Origin", "https://page.example")
				q.Header.Set("Access-Control-Request-Method", "GET")
				q.Header.Set("Access-Control-Request-Headers", "mcp-protocol-version")
			})
			if w.Code != 204 || w.Header().Get("Access-Control-Allow-Headers") != "mcp-protocol-version" {
				t.Errorf("OPTIONS %s: %d %v", path, w.Code, w.Header())
			}
		}
		v := decode(t, r.do("GET", paths[0], "", nil))
		if name == "oauth-protected-resource" {
			if v["resource"] != testBase+"/mcp" || v["authorization_servers"].([]any)[0] != testBase {
				t.Error(v)
			}
			continue
		}
		if v["issuer"] != testBase || v["authorization_response_iss_parameter_supported"] != true || v["client_id_metadata_document_supported"] != true ||
			!slices.Contains(v["token_endpoint_auth_methods_supported"].([]any), any("none")) || v["code_challenge_methods_supported"].([]any)[0] != "S256" {
			t.Error(v)
		}
	}
}

// TestChallenge: who has no token that counts is told where to sign in, whatever is asked and however.
func TestChallenge(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/mcp", "/mcp/"} {
		for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "DELETE", "PUT"} {
			for name, change := range map[string]func(*http.Request){
				"nothing":     func(*http.Request) {},
				"old version": func(q *http.Request) { q.Header.Set("Mcp-Protocol-Version", "1999-01-01") },
				"session":     func(q *http.Request) { q.Header.Set("Mcp-Session-Id", "x") },
				"bad token":   bearer("x"),
				"basic":       func(q *http.Request) { q.SetBasicAuth("a", "b") },
				"a page": func(q *http.Request) {
					q.Header.Set("Origin", "https://page.example")
					q.Header.Set("Sec-Fetch-Site", "cross-site")
				},
			} {
				w := r.do(method, path, "", change)
				got := w.Header().Get("WWW-Authenticate")
				if w.Code != 401 || !strings.Contains(got, `resource_metadata="`+testBase+`/.well-known/oauth-protected-resource/mcp"`) ||
					!strings.Contains(got, `scope="read"`) || strings.Contains(got, "invalid_token") != (name == "bad token") || strings.Contains(got, "offline") {
					t.Errorf("%s %s, %s: %d %s", method, path, name, w.Code, got)
				}
				if name == "a page" && !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
					t.Error(w.Header())
				}
			}
		}
	}
}

// TestPages: a page of another origin calls with the token of a client that signed in, and with nothing else; it can
// neither read nor do anything at the page that waits.
func TestPages(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, _ := r.signedIn(t, id, "claude", "read *")
	own, err := r.Access.AddToken("kitchen", r.grant(t, "read *"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	page := func(change func(*http.Request)) func(*http.Request) {
		return func(q *http.Request) {
			q.Header.Set("Origin", "https://page.example")
			q.Header.Set("Sec-Fetch-Site", "cross-site")
			q.Header.Set("Sec-Fetch-Mode", "cors")
			q.Header.Set("Sec-Fetch-Dest", "empty")
			change(q)
		}
	}
	plain := func(q *http.Request) { q.TLS = nil; bearer("site's own")(q) }
	if w := r.do("POST", "/mcp", "{}", plain); w.Code != 200 {
		t.Error("the site's own token", w.Code)
	}
	for name, tt := range map[string]struct {
		method, path string
		change       func(*http.Request)
		status       int
	}{
		"its token":           {"POST", "/mcp", bearer(token), 200},
		"an owner's token":    {"POST", "/mcp", bearer(own), 401},
		"the site's token":    {"POST", "/mcp", plain, 401},
		"another route":       {"POST", "/api", bearer(token), 403},
		"the page that waits": {"GET", "/authorize?" + authorizing(id).Encode(), func(*http.Request) {}, 403},
		"two origins":         {"POST", "/mcp", func(q *http.Request) { q.Header.Add("Origin", "https://other.example"); bearer(token)(q) }, 403},
		"a preflight": {"OPTIONS", "/mcp", func(q *http.Request) {
			q.Header.Set("Access-Control-Request-Method", "POST")
			q.Header.Set("Access-Control-Request-Headers", "authorization, mcp-protocol-version")
		}, 204},
		"a preflight elsewhere": {"OPTIONS", "/api", func(q *http.Request) { q.Header.Set("Access-Control-Request-Method", "POST") }, 403},
		"on the LAN":            {"POST", "/mcp", func(q *http.Request) { q.Host = "lan"; bearer(token)(q) }, 403},
	} {
		w := r.do(tt.method, tt.path, "", page(tt.change))
		if w.Code != tt.status || (w.Header().Get("Access-Control-Allow-Origin") != "") != (tt.status != 403) ||
			w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	framed := func(q *http.Request) {
		q.Header.Set("Sec-Fetch-Site", "cross-site")
		q.Header.Set("Sec-Fetch-Mode", "navigate")
		q.Header.Set("Sec-Fetch-Dest", "iframe")
	}
	if w := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", framed); w.Code != 403 {
		t.Error("in a frame", w.Code)
	}
	if len(r.Waiting()) != 0 {
		t.Error("a page of another origin had an owner asked")
	}
}

// TestPage: the page cannot be framed, has neither script nor form, sets no cookie, and shows what a client says as text.
func TestPage(t *testing.T) {
	r := newRig(t)
	name := `<script>alert(1)</script>\u202e\n"'&` + strings.Repeat("\u0335", 30) + strings.Repeat("x", 5000)
	id, _ := r.register(t, fmt.Sprintf(`{"client_name":"%s","redirect_uris":["http://localhost:1/"],"token_endpoint_auth_method":"none"}`, strings.ReplaceAll(name, `"'`, `\"'`)))
	v := authorizing(id)
	v.Set("redirect_uri", "http://localhost:2/")
	w := r.do("GET", r.start(t, v), "", nil)
	text := w.Body.String()
	for _, never := range []string{"<script", "<form", "\u202e", strings.Repeat("\u0335", 4), strings.Repeat("x", 100), "javascript:"} {
		if strings.Contains(text, never) {
			t.Errorf("it has %q: %s", never, text)
		}
	}
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "form-action") || !strings.Contains(policy, "default-src 'none'") ||
		w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "no-referrer" || len(w.Header().Values("Set-Cookie")) > 0 {
		t.Error(w.Header())
	}
	if !strings.Contains(text, "overflow-wrap:anywhere") || !strings.Contains(text, "localhost:2") || !strings.Contains(text, "the computer of this browser") {
		t.Error(text)
	}
}

// TestBounds: what waits is bounded, by network and in all; it is over after some minutes; and a network does not ask
// as often as it likes.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id, _ := r.register(t, claude)
		refused := func() bool {
			w := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil)
			return w.Code == http.StatusBadRequest && refusedTo(t, w).Query().Get("error") == "temporarily_unavailable"
		}
		for range maxFrom {
			r.start(t, authorizing(id))
		}
		if !refused() {
			t.Error("more wait of one network")
		}
		for i := range maxWaiting { // one caller may have many networks of a provider
			r.from = fmt.Sprintf("[2001:db8:%x::1]:1", i)
			r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil)
		}
		if n := len(r.Waiting()); n != maxFrom+maxNear {
			t.Errorf("%d wait", n)
		}
		for i := range maxWaiting {
			r.from = fmt.Sprintf("203.0.%d.1:1", i)
			r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil)
		}
		if n := len(r.Waiting()); n != maxWaiting {
			t.Errorf("%d wait", n)
		}
		if err := r.Deny(r.Waiting()[0].Handle); err != nil {
			t.Fatal(err)
		}
		if refused() {
			t.Error("the owner answered one, and it still takes a place")
		}
		handle := r.Waiting()[0].Handle
		time.Sleep(waitTime)
		if len(r.Waiting()) != 0 || refused() {
			t.Error("they wait for ever")
		}
		if r.Allow(handle, "late", r.grant(t, "read *")) == nil {
			t.Error("allowed too late")
		}
		r.from = "192.0.2.1:1"
		for range 60 {
			r.do("POST", "/register", "{}", nil)
		}
		if w := r.do("POST", "/register", claude, nil); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Error(w.Code)
		}
		r.from = "192.0.2.2:1"
		r.register(t, claude)
		if r.writes != 0 {
			t.Errorf("%d writes", r.writes)
		}
	})
}

// TestUnclaimed: a site without an owner lets nobody wait.
func TestUnclaimed(t *testing.T) {
	r := newRig(t)
	key := r.Key
	r.store = nil
	r.open(t, key)
	id, _ := r.register(t, claude)
	w := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil)
	if to := refusedTo(t, w); to.Query().Get("error") != "temporarily_unavailable" {
		t.Error(to)
	}
}

// TestArrivals: what came to sign in is remembered, one step of a network once, with what it calls itself and why it was
// refused. An owner's look does not take the place of what a program did. Strangers displace it, and take no more room.
func TestArrivals(t *testing.T) {
	r := newRig(t)
	is := func(step, client string, refused bool) {
		t.Helper()
		all := r.Arrivals()
		if len(all) == 0 {
			t.Fatal("nothing came")
		}
		if a := all[len(all)-1]; a.Step != step || a.Client != client || (a.Err != "") != refused || a.From != "198.51.100.7" || a.At.IsZero() {
			t.Errorf("%+v", a)
		}
	}
	agent := func(q *http.Request) { q.Header.Set("User-Agent", "python-httpx/0.28\x1b[31m") }
	r.do("POST", "/mcp", "{}", agent)
	is("/mcp", "python-httpx/0.28[31m", true)
	r.do("GET", "/.well-known/oauth-protected-resource/mcp", "", agent)
	r.do("GET", "/.well-known/openid-configuration", "", nil)
	is("/.well-known/", "", false)
	id, _ := r.register(t, claude)
	is("/register", "", false)
	v := authorizing(id)
	v.Set("redirect_uri", "https://evil.example/")
	r.do("GET", "/authorize?"+v.Encode(), "", agent)
	is("/authorize", "Claude", true)
	r.do("GET", "/authorize?"+authorizing("dcr.x").Encode(), "", agent)
	is("/authorize", "python-httpx/0.28[31m", true)
	r.start(t, authorizing(id))
	is("/authorize", "Claude", false)
	r.tokens(t, codeForm(id, "what"))
	is("/token", "", true)
	r.do("POST", "/mcp", "{}", func(q *http.Request) { q.Header.Set("User-Agent", outbound.LookAgent) })
	is("/mcp", outbound.LookAgent, true)
	if n := len(r.Arrivals()); n != 6 {
		t.Errorf("%d steps", n)
	}
	for i := range 2 * maxArrivals {
		r.from = fmt.Sprintf("192.0.2.%d:1", i)
		r.do("POST", "/mcp", "{}", nil)
	}
	if n := len(r.Arrivals()); n != maxArrivals {
		t.Errorf("%d steps", n)
	}
}
