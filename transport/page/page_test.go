package page

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/principal"
	"agentsite/transport/web"
)

const host = "agentsite.localhost:8473"

// served is a page with a route of a site beside it.
func served() (*Page, http.Handler) {
	who := principal.Principal{Kind: principal.SiteToken, ID: "token", Account: "token"}
	p := New(who, func() []Site { return []Site{{Name: "greenhouse", URL: "/mcp"}} })
	routes := append(p.Routes(), p.Bind(web.Route{
		Pattern: "POST /mcp", Admission: web.Principals, Serve: func(w http.ResponseWriter, r *http.Request, c web.Caller) {
			w.Write([]byte(c.Who.ID))
			if r.ContentLength > 0 { // a stream
				<-r.Context().Done()
			}
		}}))
	return p, web.Handler(web.Options{Hosts: []string{host}, Callers: p.Callers(Nobody{}), Routes: routes})
}

// ask sends a request and returns the status and the body.
func ask(h http.Handler, method, path, token, body string, change ...func(*http.Request)) (int, string) {
	r := httptest.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// keyOf returns the body with which a link begins a session.
func keyOf(t *testing.T, link string) string {
	t.Helper()
	base, key, ok := strings.Cut(link, "/#k=")
	if !ok || base != "http://"+host || len(key) < 22 {
		t.Fatalf("the link is %s", link)
	}
	return `{"key":"` + key + `"}`
}

// signIn begins a session and returns its token.
func signIn(t *testing.T, p *Page, h http.Handler, change ...func(*http.Request)) string {
	t.Helper()
	status, body := ask(h, "POST", "/page/session", "", keyOf(t, p.Link("http://"+host, time.Minute)), change...)
	var told struct {
		Token, You string
		Sites      []Site
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 || len(told.Token) < 40 {
		t.Fatalf("%d %s", status, body)
	}
	if told.You != "token" || len(told.Sites) != 1 || told.Sites[0] != (Site{Name: "greenhouse", URL: "/mcp"}) {
		t.Errorf("a session is told %s", body)
	}
	return told.Token
}

// TestSession: a link counts once and for its time, a session for as long as it is used, and both are
// bounded in number. Nothing else counts.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := served()
		begin := func(what, body string, want int, change ...func(*http.Request)) {
			t.Helper()
			if status, says := ask(h, "POST", "/page/session", "", body, change...); status != want {
				t.Errorf("%s: %d %s", what, status, says)
			}
		}
		use := func(what, token string, want int, change ...func(*http.Request)) {
			t.Helper()
			if status, says := ask(h, "POST", "/mcp", token, "", change...); status != want {
				t.Errorf("%s: %d %s", what, status, says)
			}
		}
		overTLS := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }

		key := keyOf(t, p.Link("http://"+host, time.Minute))
		begin("no key", `{}`, 401)
		begin("an empty key", `{"key":""}`, 401)
		begin("another key", `{"key":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, 401)
		begin("a form", key, 400, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
		begin("no JSON", "key", 400)
		begin("a long body", strings.Repeat("x", 1<<20), 413)
		begin("another page", key, 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") })
		begin("another origin", key, 403, func(r *http.Request) { r.Header.Set("Origin", "http://localhost:1") })
		begin("another host", key, 403, func(r *http.Request) { r.Host = "rebound.example:8473" })
		begin("the key", key, 200)
		begin("the key again", key, 401)
		late := keyOf(t, p.Link("http://"+host, time.Minute))
		time.Sleep(time.Minute)
		begin("an old key", late, 401)

		token := signIn(t, p, h)
		use("a session", token, 200)
		use("a session over the network", token, 401, overTLS)
		use("no token", "", 401)
		use("the key of a link", strings.Split(p.Link("", time.Minute), "=")[1], 401)
		for range 3 {
			time.Sleep(idleTimeout - time.Second)
			use("a session that is used", token, 200)
		}
		streaming, cancel := context.WithCancel(t.Context())
		go ask(h, "POST", "/mcp", token, "listen", func(r *http.Request) { *r = *r.WithContext(streaming) })
		synctest.Wait()
		time.Sleep(2 * idleTimeout)
		use("a session with a stream", token, 200)
		cancel()
		synctest.Wait()
		time.Sleep(idleTimeout)
		use("a session that was idle", token, 401)

		token = signIn(t, p, h)
		for range maxSessions - 1 {
			signIn(t, p, h)
		}
		use("one of many", token, 200)
		signIn(t, p, h)
		use("one of too many, used last", token, 200)
		if n := len(p.sessions.list(nil)); n != maxSessions {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestSessionsEnd: a session lists the others and ends them, with their streams.
func TestSessionsEnd(t *testing.T) {
	p, h := served()
	one := signIn(t, p, h)
	two := signIn(t, p, h, func(r *http.Request) { r.Header.Set("User-Agent", "a"+strings.Repeat("ä", 1000)+"\xff") })
	streamed := make(chan int)
	go func() {
		status, _ := ask(h, "POST", "/mcp", two, "listen")
		streamed <- status
	}()
	var told struct{ Sessions []listed }
	status, body := ask(h, "GET", "/page/session", one, "")
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 || len(told.Sessions) != 2 || strings.Contains(body, one) {
		t.Fatalf("%d %s", status, body)
	}
	if other, own := told.Sessions[0], told.Sessions[1]; other.Own || !own.Own {
		t.Errorf("the sessions are %+v", told.Sessions)
	}
	path := "/page/session/" + strconv.Itoa(told.Sessions[0].Number)
	for _, tt := range []struct {
		token string
		want  int
	}{{"", 401}, {"x", 401}, {one, 204}, {one, 404}, {two, 401}} {
		if status, body := ask(h, "DELETE", path, tt.token, ""); status != tt.want {
			t.Errorf("%d %s, want %d", status, body, tt.want)
		}
		if tt.want == 204 {
			<-streamed
		}
	}
}

// TestBehind: behind a proxy the page has its files and who is asked, may be framed by pages of its own origin alone,
// and has no way to sign in by what a browser keeps.
func TestBehind(t *testing.T) {
	routes := New(principal.Principal{}, func() []Site { return nil }).BehindRoutes()
	for _, r := range routes {
		switch r.Pattern {
		case "GET " + sessionPath, "GET /{$}", "GET /page/{file}":
		default:
			t.Errorf("%s is there", r.Pattern)
		}
	}
	for _, path := range []string{"/", "/page/page.js"} {
		w := httptest.NewRecorder()
		web.Handler(web.Options{Behind: true, Callers: Nobody{}, Routes: routes}).ServeHTTP(w,
			httptest.NewRequest("GET", "http://home"+path, nil))
		if got := w.Header().Get("Content-Security-Policy"); w.Code != 200 || got != strings.Replace(policy, "ancestors 'none'", "ancestors 'self'", 1) || got == policy {
			t.Errorf("%s: %d %s", path, w.Code, got)
		}
	}
}

// TestDocument: what is public is the same for every site and runs no foreign script.
func TestDocument(t *testing.T) {
	_, h := served()
	paths := []string{"/"}
	for name := range readFiles(dist, "dist", policy) {
		paths = append(paths, "/page/"+name)
	}
	for _, path := range paths {
		r := httptest.NewRequest("GET", "http://"+host+path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Header().Get("Content-Type") == "" || strings.Contains(w.Body.String(), "greenhouse") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if csp := w.Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "require-trusted-types-for 'script'") {
			t.Errorf("%s: %s", path, csp)
		}
		plain := w.Body.String()
		r.Header.Set("Accept-Encoding", "br, gzip")
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		unpacked, err := gzip.NewReader(w.Body)
		if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatal(path, err, w.Header())
		}
		if text, err := io.ReadAll(unpacked); err != nil || string(text) != plain {
			t.Errorf("%s by gzip: %d bytes of %d, %v", path, len(text), len(plain), err)
		}
		r.Header.Set("If-None-Match", w.Header().Get("Etag"))
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 304 {
			t.Errorf("%s again: %d", path, w.Code)
		}
	}
}

// TestManifest: the page can be installed. The manifest has no key and nothing of a site, the page may load it,
// and its icons are what it says.
func TestManifest(t *testing.T) {
	_, h := served()
	get := func(path string) (http.Header, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+path, nil))
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
		return w.Header(), w.Body.String()
	}
	header, text := get("/page/app.webmanifest")
	var app struct {
		ID, Name, Display string
		StartURL          string `json:"start_url"`
		Icons             []struct{ Src, Sizes, Type, Purpose string }
	}
	err := json.Unmarshal([]byte(text), &app)
	if err != nil || header.Get("Content-Type") != "application/manifest+json" {
		t.Fatal(err, header)
	}
	if app.ID != "/" || app.StartURL != "/" || app.Name == "" || app.Display != "standalone" {
		t.Errorf("%+v", app)
	}
	sizes := map[string]bool{}
	for _, icon := range app.Icons {
		header, content := get(icon.Src)
		if header.Get("Content-Type") != icon.Type || len(content) > 4096 {
			t.Errorf("%+v: %v, %d bytes", icon, header, len(content))
		}
		if icon.Purpose == "maskable" {
			drawn, err := png.DecodeConfig(strings.NewReader(content))
			if err != nil || fmt.Sprintf("%dx%d", drawn.Width, drawn.Height) != icon.Sizes {
				t.Errorf("%+v: %+v, %v", icon, drawn, err)
			}
			sizes[icon.Sizes] = true
		}
	}
	header, document := get("/")
	if !sizes["192x192"] || !sizes["512x512"] || !strings.Contains(document, `"page/app.webmanifest"`) ||
		!strings.Contains(header.Get("Content-Security-Policy"), "manifest-src 'self';") {
		t.Errorf("%v, %v\n%s", sizes, header, document)
	}
}

// TestClose: the end of a page ends its sessions, with their streams, and its links.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := served()
		token, link := signIn(t, p, h), keyOf(t, p.Link("http://"+host, time.Minute))
		go ask(h, "POST", "/mcp", token, "listen") // the bubble waits for its end
		synctest.Wait()
		p.Close()
		if status, _ := ask(h, "POST", "/mcp", token, ""); status != 401 {
			t.Errorf("a session: %d", status)
		}
		if status, _ := ask(h, "POST", "/page/session", "", link); status != 401 {
			t.Errorf("a link: %d", status)
		}
	})
}

// TestManySessions: one that has a stream does not end for a new one while another is idle.
func TestManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := served()
		watches := signIn(t, p, h)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go ask(h, "POST", "/mcp", watches, "listen", func(r *http.Request) { *r = *r.WithContext(ctx) })
		synctest.Wait()
		for range maxSessions {
			time.Sleep(time.Second)
			signIn(t, p, h)
		}
		if status, _ := ask(h, "POST", "/mcp", watches, ""); status != 200 {
			t.Errorf("the one with a stream: %d", status)
		}
	})
}
