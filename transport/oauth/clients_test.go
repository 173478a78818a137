package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRegistrations: what the clients of November 2026 register brings them to the page that waits. Each URI is one that
// the client then uses.
func TestRegistrations(t *testing.T) {
	const codes, both = `"grant_types":["authorization_code"]`, `"grant_types":["authorization_code","refresh_token"]`
	for name, c := range map[string]struct {
		metadata string
		use      string
		secret   bool
	}{
		"claude.ai":   {`"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"token_endpoint_auth_method":"none","response_types":["code"],"scope":"read",` + both, "https://claude.ai/api/mcp/auth_callback", false},
		"claude.com":  {`"redirect_uris":["https://claude.com/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post"`, "https://claude.com/api/mcp/auth_callback", true},
		"claude code": {`"client_name":"Claude Code","redirect_uris":["http://localhost:53682/callback"],"token_endpoint_auth_method":"none","application_type":"native"`, "http://localhost:61234/callback", false},
		"ChatGPT":     {`"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/abc_123"],"token_endpoint_auth_method":"private_key_jwt","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:jwt-bearer"]`, "https://chatgpt.com/connector/oauth/abc_123", false},
		"Codex":       {`"redirect_uris":["http://127.0.0.1:1455/callback"],"token_endpoint_auth_method":"none"`, "http://127.0.0.1:2000/callback", false},
		"VS Code":     {`"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"application_type":"native"`, "http://127.0.0.1:33418/", false},
		"Cursor":      {`"client_name":"Cursor","redirect_uris":["http://localhost:8787/callback","https://www.cursor.com/agents/mcp/oauth/callback","cursor://anysphere.cursor-mcp/oauth/callback"],"token_endpoint_auth_method":"none"`, "cursor://anysphere.cursor-mcp/oauth/callback", false},
		"Gemini":      {`"client_name":"Gemini","redirect_uris":["https://gemini.google.com/mcp/oauth/callback","https://oauth-redirect.googleusercontent.com/r/user-1"],` + codes, "https://oauth-redirect.googleusercontent.com/r/user-1", true},
		"Gemini CLI":  {`"client_name":"Gemini CLI","redirect_uris":["http://localhost:7777/oauth/callback"],"token_endpoint_auth_method":"none","code_challenge_method":["S256"]`, "http://localhost:41000/oauth/callback", false},
		"Copilot":     {`"client_name":"Copilot Studio","redirect_uris":["https://global.consent.azure-apim.net/redirect/x"],"token_endpoint_auth_method":"client_secret_basic"`, "https://global.consent.azure-apim.net/redirect/x", true},
		"Mistral":     {`"redirect_uris":["https://callback.mistral.ai/v1/integrations_auth/oauth2_callback"],"scope":""`, "https://callback.mistral.ai/v1/integrations_auth/oauth2_callback", true},
		"n8n":         {`"client_name":"n8n","redirect_uris":["https://n8n.example.net/rest/oauth2-credential/callback"],"token_endpoint_auth_method":"none"`, "https://n8n.example.net/rest/oauth2-credential/callback", false},
		"HA":          {`"client_name":"Home Assistant","redirect_uris":["https://my.home-assistant.io/redirect/oauth"]`, "https://my.home-assistant.io/redirect/oauth", true},
		"HA at home":  {`"client_name":"Home Assistant","redirect_uris":["https://ha.example.net:8123/auth/external/callback"]`, "https://ha.example.net:8123/auth/external/callback", true},
		"Perplexity":  {`"redirect_uris":["https://www.perplexity.ai/rest/connections/oauth_callback"]`, "https://www.perplexity.ai/rest/connections/oauth_callback", true},
		"Grok":        {`"redirect_uris":["https://grok.com/connectors-oauth-exchange-code/"]`, "https://grok.com/connectors-oauth-exchange-code/", true},
		"Devin":       {`"redirect_uris":["https://api.devin.ai/mcp/oauth/callback"],"logo_uri":null`, "https://api.devin.ai/mcp/oauth/callback", true},
		"app":         {`"redirect_uris":["com.example.app:/callback"]`, "com.example.app:/callback", true},
		"IPv6":        {`"redirect_uris":["http://[::1]:1234/cb?x=1"],"token_endpoint_auth_method":"none"`, "http://[::1]:4321/cb?x=1", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id, secret := r.register(t, "{"+c.metadata+"}")
			if (secret != "") != c.secret {
				t.Errorf("its secret is %q", secret)
			}
			v := authorizing(id)
			v.Set("redirect_uri", c.use)
			page := r.start(t, v)
			if local := r.Waiting()[0].Local; local == strings.HasPrefix(c.use, "https:") {
				t.Errorf("it is on the browser's computer: %v", local)
			}
			r.allow(t, "it", "read *")
			w := r.do("GET", page, "", nil)
			to := w.Header().Get("Location")
			if u, _ := url.Parse(c.use); u.Scheme != "http" && u.Scheme != "https" {
				_, to, _ = strings.Cut(w.Body.String(), `0;url=`)
				to, _, _ = strings.Cut(to, `"`)
				to = strings.ReplaceAll(to, "&amp;", "&")
			}
			got, err := url.Parse(to)
			if err != nil || !strings.HasPrefix(to, strings.SplitN(c.use, "?", 2)[0]) || got.Query().Get("iss") != testBase {
				t.Fatal(to, err)
			}
			form := codeForm(id, got.Query().Get("code"))
			form.Set("redirect_uri", c.use)
			if c.secret {
				if status, v := r.tokens(t, form); status != 401 || v["error"] != "invalid_client" {
					t.Error(status, v)
				}
				form.Set("client_secret", secret)
			}
			form.Set("client_assertion", "passed over")
			if status, v := r.tokens(t, form); status != 200 {
				t.Error(status, v)
			}
		})
	}
}

// TestBasic: a client with a secret may prove it in the header, encoded as in a form.
func TestBasic(t *testing.T) {
	r := newRig(t)
	id, secret := r.register(t, strings.Replace(claude, `"none"`, `"client_secret_basic"`, 1))
	page := r.start(t, authorizing(id))
	r.allow(t, "it", "read *")
	form := codeForm(id, r.sentBack(t, page).Get("code"))
	form.Del("client_id")
	for _, tt := range []struct {
		secret string
		status int
	}{{"wrong", 401}, {secret, 200}} {
		w := r.do("POST", "/token", form.Encode(), func(q *http.Request) {
			q.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(tt.secret))
		})
		if w.Code != tt.status || (w.Header().Get("WWW-Authenticate") != "") != (tt.status == 401) {
			t.Error(w.Code, w.Header())
		}
	}
}

// TestLookAlikes: no registration has a URI that looks like another, or leads to code.
func TestLookAlikes(t *testing.T) {
	r := newRig(t)
	for _, uri := range []string{
		"https://claude.ai@evil.example/cb", "https://ChatGPT.com/cb", "http://localhost.evil/cb", "http://evil.example/cb", "https://claude.ai/cb#x",
		"https://claude.ai/cb#", "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "blob:https://x/y", "about:blank",
		"intent://x/y", "//evil.example/cb", "/cb", "", " https://claude.ai/cb", "https://claude.ai/c b", "https://claude.ai\\@evil.example/cb", "https:///cb", "https://",
		"app:/cb", "HTTPS://claude.ai/cb", "http://127.0.0.1.evil/cb", "http://0x7f.1/cb", "https://claude.ai/\ncb", "view-source:https://x", "https://clаude.ai/cb", // a Cyrillic letter
		"https://cl%D0%B0ude.ai/cb", "https://claude.ai%E2%80%AE/cb", "com.example.app://%E2%80%AE/cb", "http://[::1%25eth0]/cb", `https://claude.ai"/cb`,
		"https://claude.ai/" + strings.Repeat("x", 512),
	} {
		text := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(uri)
		w := r.do("POST", "/register", `{"redirect_uris":["https://good.example/cb","`+text+`"]}`, nil)
		if v := decode(t, w); w.Code != 400 || v["error"] != "invalid_redirect_uri" {
			t.Errorf("%q: %d %v", uri, w.Code, v)
		}
	}
	for _, body := range []string{"", "{}", "[]", `{"redirect_uris":[]}`, `{"redirect_uris":["https://a.example/"],"redirect_uris":["https://b.example/"]}`,
		`{"redirect_uris":[` + strings.Repeat(`"https://a.example/",`, 10) + `"https://a.example/"]}`, strings.Repeat("[", 5000)} {
		if w := r.do("POST", "/register", body, nil); w.Code != 400 {
			t.Errorf("%.60s: %d", body, w.Code)
		}
	}
	if w := r.do("POST", "/register", strings.Repeat("x", 20000), nil); w.Code != 413 {
		t.Error(w.Code)
	}
	r = newRig(t)
	id, _ := r.register(t, claude)
	for _, uri := range []string{
		"https://claude.ai:8443/api/mcp/auth_callback", "https://claude.ai/api/mcp/auth_callback/", "https://claude.ai/api/mcp/auth_callback?x=1", "https://claude.ai/api/mcp/../mcp/auth_callback",
		"http://claude.ai/api/mcp/auth_callback", "https://claude.ai/api/mcp/Auth_callback", "https://evil.example/", "http://localhost/callback",
	} {
		v := authorizing(id)
		v.Set("redirect_uri", uri)
		if w := r.do("GET", "/authorize?"+v.Encode(), "", nil); w.Code != 400 || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d", uri, w.Code)
		}
	}
	local, _ := r.register(t, `{"redirect_uris":["http://localhost:1/cb"]}`)
	for _, uri := range []string{"https://localhost:1/cb", "http://127.0.0.1:1/cb", "http://localhost:1/cb/", "http://localhost:1/cb?x=1"} {
		v := authorizing(local)
		v.Set("redirect_uri", uri)
		if w := r.do("GET", "/authorize?"+v.Encode(), "", nil); w.Code != 400 || strings.Contains(w.Body.String(), "href") {
			t.Errorf("%s: %d", uri, w.Code)
		}
	}
	for _, forged := range []string{"", "dcr.", id + "x", id[:len(id)-1], "dcr.e30.AAAA", strings.Replace(id, "dcr.", "dcr.A", 1)} {
		v := authorizing(forged)
		if w := r.do("GET", "/authorize?"+v.Encode(), "", nil); w.Code != 400 || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d", forged, w.Code)
		}
	}
	other := newRig(t)
	if w := other.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil); w.Code != 400 {
		t.Error("a client of another site", w.Code)
	}
}

// TestDocuments: clients by the URL of their metadata.
func TestDocuments(t *testing.T) {
	r := newRig(t)
	const at = "https://app.example/client.json"
	document := func(id, more string) string {
		return fmt.Sprintf(`{"client_id":%q,"client_name":"App","redirect_uris":["%s"]%s}`, id, callback, more)
	}
	r.docs[at] = document(at, `,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://app.example/jwks"`)
	token, _ := r.signedIn(t, at, "app", "read *")
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 200 {
		t.Error(w.Code)
	}
	for id, text := range map[string]string{
		"https://a.example/other":   document(at, ""),
		"https://a.example/no-id":   strings.Replace(document("", ""), `"client_id":"",`, "", 1),
		"https://a.example/no-json": "<html>",
		"https://a.example/evil":    strings.Replace(document("https://a.example/evil", ""), callback, "javascript:alert(1)", 1),
		"https://a.example/long":    document("https://a.example/long", `,"x":"`+strings.Repeat("x", maxDocument)+`"`),
	} {
		r.docs[id] = text
		if w := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil); w.Code != 400 {
			t.Errorf("%s: %d", id, w.Code)
		}
	}
	for _, id := range []string{
		"http://a.example/x", "https://a.example", "https://a.example/", "https://a.example:8443/x", "https://u@a.example/x", "https://a.example/x#y", "https://a.example/x?y=1",
		"https://A.example/x", "https://a.example/../x", "https://a.example/%2e%2e/x", "https://127.0.0.1/x", "https://[::1]/x", "https://localhost/x", "https://a.example/x y", "ftp://a.example/x",
		"https://ChatGPT.com/oauth/client.json", "https://chatgpt.com@evil.example/oauth/client.json", "https://chatgpt.com./../oauth/client.json", "https://a.example/" + strings.Repeat("x", 600),
		"https://%D0%B0.example/x",
	} {
		r.docs[id] = document(id, "")
		if w := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil); w.Code != 400 {
			t.Errorf("%s: %d", id, w.Code)
		}
	}
}

// TestKnownDocuments: the documents that are known here, too, have a right form, and are used where the client's own
// server does not answer.
func TestKnownDocuments(t *testing.T) {
	r := newRig(t)
	for id, c := range known {
		if err := checkDocumentURL(id); err != nil {
			t.Error(err)
		}
		for _, uri := range c.Redirects {
			if _, err := parseRedirect(uri); err != nil {
				t.Error(err)
			}
		}
		got, err := r.documents.client(t.Context(), id, netip.Prefix{})
		if err != nil || got.id != id || got.Name != c.Name {
			t.Error(got, err)
		}
	}
}

// TestPrivateDocuments: the site asks no address of a private network for a client's document, and none twice at once
// for one network. A registered client does not wait for them.
func TestPrivateDocuments(t *testing.T) {
	var asked atomic.Int32
	hidden := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer hidden.Close()
	d := newDocuments(nil)
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:10.0.0.1]", "100.64.0.1"} {
		port := hidden.URL[strings.LastIndex(hidden.URL, ":"):]
		if _, err := d.fetch(t.Context(), "https://"+host+port+"/x"); err == nil || !strings.Contains(err.Error(), "private network") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if asked.Load() > 0 {
		t.Error("it was asked")
	}
}

// TestSlowDocuments: documents that do not come hold up neither their network's limit of others nor a client that
// registered.
func TestSlowDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = "https://app.example/client.json"
		d := newDocuments(func(ctx context.Context, url string) ([]byte, error) {
			if url == other {
				return fmt.Appendf(nil, `{"client_id":%q,"redirect_uris":[%q]}`, url, callback), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		start := time.Now()
		failed := make(chan error)
		for i := range 5 {
			go func() {
				_, err := d.client(t.Context(), fmt.Sprintf("https://evil.example/%d", i), netip.MustParsePrefix("198.51.100.7/32"))
				failed <- err
			}()
		}
		synctest.Wait()
		if _, err := d.client(t.Context(), other, netip.MustParsePrefix("203.0.113.9/32")); err != nil || time.Since(start) > 0 {
			t.Errorf("another network's client waits: %v", err)
		}
		busy := 0
		for range 5 {
			if err := <-failed; err == errBusy {
				busy++
			} else if err == nil {
				t.Error("it came")
			}
		}
		if busy != 3 || time.Since(start) > fetchTime {
			t.Errorf("%d refused, after %v", busy, time.Since(start))
		}
		r := newRig(t)
		r.documents = d
		start = time.Now()
		id, _ := r.register(t, claude)
		r.start(t, authorizing(id))
		if time.Since(start) > 0 {
			t.Error("a registered client waits")
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(claude))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := parseMetadata(text)
		if err != nil {
			return
		}
		if c.Name == "" && len(c.Redirects) == 0 || len(c.Redirects) > maxRedirects || strings.ContainsAny(c.Name, "\n\r\t\x00") {
			t.Errorf("%+v", c)
		}
		for _, uri := range c.Redirects {
			if u, err := c.redirect(uri); err != nil || u.User != nil || u.Fragment != "" {
				t.Errorf("%q: %v", uri, err)
			}
		}
	})
}

func FuzzRedirect(f *testing.F) {
	f.Add("https://claude.ai/cb")
	f.Add("http://localhost:1/cb")
	f.Add("cursor://x/y")
	f.Add("https://cl%D0%B0ude.ai/cb")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseRedirect(text)
		if err != nil {
			return
		}
		switch {
		case u.Host != "" && !strings.HasPrefix(text, u.Scheme+"://"+u.Host), u.User != nil, strings.Contains(text, "#"), len(text) > maxRedirect, u.Scheme == "javascript", u.Scheme == "data", u.Scheme == "http" && !isLoopback(u):
			t.Errorf("%q", text)
		}
		if again, err := url.Parse(u.String()); err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Errorf("%q is read as %q", text, u)
		}
	})
}

func FuzzClientID(f *testing.F) {
	f.Add("https://claude.ai/oauth/mcp-oauth-client-metadata")
	f.Add("dcr.e30.AAAAAAAAAAAAAAAAAAAAAA")
	s := &Server{}
	f.Fuzz(func(t *testing.T, id string) {
		if _, err := s.parseID(id); err == nil && !strings.HasPrefix(id, registeredPrefix) {
			t.Errorf("%q", id)
		}
		if checkDocumentURL(id) == nil {
			if u, err := url.Parse(id); err != nil || u.Scheme != "https" || u.User != nil || u.Port() != "" || u.String() != id || u.Fragment != "" {
				t.Errorf("%q", id)
			}
		}
	})
}

func FuzzRefresh(f *testing.F) {
	f.Add("asr_" + strings.Repeat("0", 96))
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := parseRefresh(text); ok && (len(text) != len(refreshPrefix)+96 || !strings.HasPrefix(text, refreshPrefix)) {
			t.Errorf("%q", text)
		}
	})
}
