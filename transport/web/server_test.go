package web

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/agents/principal"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

const echoing = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}`

// request is a good one, for a test to change.
func request(body string) *http.Request {
	r := httptest.NewRequest("POST", "http://"+testHost+"/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	return r
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// errorResponse is how a body begins that refuses with a code, and a message that begins so.
func errorResponse(code int, begins string) string {
	var b bytes.Buffer
	rpc.EncodeError(rpc.JSON, &b, &rpc.Error{Code: code, Message: begins})
	begun, _, _ := strings.Cut(b.String(), `"}}`)
	return begun
}

// says reports whether a body is the wanted one, of a refusal how it begins.
func says(body, want string) bool {
	return body == want || strings.Contains(want, `"error":{"code":`) && strings.HasPrefix(body, want)
}

// TestRouteAdmission: each route admits the callers that it should, and refuses others with the right status.
func TestRouteAdmission(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`
	notCalled := func(name string) string {
		return errorResponse(403, "this site is not called "+strconv.Quote(name))
	}
	notFrom := func(page string) string {
		return errorResponse(403, "a page of "+strconv.Quote(page))
	}
	const contentType = "Content-Type"
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	path := func(p string) func(*http.Request) {
		return func(r *http.Request) { r.Method, r.URL.Path = "GET", p }
	}
	without := func(change func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) { r.Header.Del("Authorization"); change(r) }
	}
	fetched := func(r *http.Request, mode, dest string) {
		path("/healthz")(r)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", mode)
		r.Header.Set("Sec-Fetch-Dest", dest)
	}
	key := identity.New().ID()
	stranger := func(r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{PublicKey: ed25519.PublicKey(key[:])}}}
	}
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
		says   string
	}{
		{"nothing wrong", func(*http.Request) {}, 200, good},
		{"another of its names", host("greenhouse.local:8473"), 200, good},

		{"Host: wrong name", host("evil.example:8473"), 403, notCalled("evil.example:8473")},
		{"Host: wrong port", host("127.0.0.1:80"), 403, notCalled("127.0.0.1:80")},
		{"Host: no port", host("127.0.0.1"), 403, notCalled("127.0.0.1")},
		{"Host: missing", host(""), 403, notCalled("")},
		{"Host: other case", host("LocalHost:8473"), 403, notCalled("LocalHost:8473")},
		{"Host: trailing dot", host("localhost.:8473"), 403, notCalled("localhost.:8473")},
		{"Host: prefix of a name", host("127.0.0.1:847"), 403, notCalled("127.0.0.1:847")},
		{"Host: very long", host(strings.Repeat("a", 200)), 403, notCalled(strings.Repeat("a", 80))},
		{"Host: any address", host("0.0.0.0:8473"), 403, notCalled("0.0.0.0:8473")},
		{"Host: an address as a number", host("2130706433:8473"), 403, notCalled("2130706433:8473")},
		{"Host: a user before it", host("evil.example@" + testHost), 403, notCalled("evil.example@" + testHost)},
		{"Host: forwarded", func(r *http.Request) { host("evil.example")(r); r.Header.Set("X-Forwarded-Host", testHost) }, 403, notCalled("evil.example")},
		{"Host before the token", without(host("evil.example")), 403, notCalled("evil.example")},
		{"Host before the path", func(r *http.Request) { path("/healthz")(r); r.Host = "evil.example" }, 403, notCalled("evil.example")},

		{"Origin: its own", header("Origin", "http://"+testHost), 200, good},
		{"Origin: its own, https", header("Origin", "https://localhost:8473"), 200, good},
		{"Origin: another site", header("Origin", "https://evil.example"), 403, notFrom("https://evil.example")},
		{"Origin: another port", header("Origin", "http://127.0.0.1:8080"), 403, notFrom("http://127.0.0.1:8080")},
		{"Origin: null", header("Origin", "null"), 403, notFrom("null")},
		{"Origin: empty", header("Origin", ""), 403, notFrom("")},
		{"Origin: begins like its own", header("Origin", "http://"+testHost+".evil.example"), 403, notFrom("http://" + testHost + ".evil.example")},
		{"Origin: with a path", header("Origin", "http://"+testHost+"/"), 403, notFrom("http://" + testHost + "/")},
		{"Origin: with a user", header("Origin", "http://evil@"+testHost), 403, notFrom("http://evil@" + testHost)},
		{"Origin: another scheme", header("Origin", "ws://"+testHost), 403, notFrom("ws://" + testHost)},
		{"Origin: two in one", header("Origin", "http://"+testHost+" http://"+testHost), 403, notFrom("http://" + testHost + " http://" + testHost)},
		{"Origin: any", header("Origin", "*"), 403, notFrom("*")},
		{"Origin: twice", func(r *http.Request) {
			r.Header["Origin"] = []string{"http://" + testHost, "http://" + testHost}
		}, 403, notFrom("http://" + testHost)},
		{"Origin: own, then another's", func(r *http.Request) {
			r.Header["Origin"] = []string{"http://" + testHost, "https://evil.example"}
		}, 403, notFrom("http://" + testHost)},
		{"Origin before the token", without(header("Origin", "null")), 403, notFrom("null")},

		{"token: missing", without(func(*http.Request) {}), 401, errorResponse(403, "no token")},
		{"token: wrong", header("Authorization", "Bearer nope"), 401, errorResponse(403, "a wrong token")},
		{"token: longer", header("Authorization", "Bearer "+testToken+"x"), 401, errorResponse(403, "a wrong token")},
		{"token: in the query only", without(func(r *http.Request) { r.URL.RawQuery = "token=" + testToken + "&access_token=" + testToken }), 401, errorResponse(403, "no token")},
		{"token: other scheme", header("Authorization", "Basic "+testToken), 401, errorResponse(403, "no token")},
		{"token: no scheme", header("Authorization", testToken), 401, errorResponse(403, "no token")},
		{"token: empty", header("Authorization", "Bearer "), 401, errorResponse(403, "no token")},
		{"token: scheme in lower case", header("Authorization", "bearer "+testToken), 200, good},
		{"token: in a cookie", without(header("Cookie", "token="+testToken)), 401, errorResponse(403, "no token")},
		{"token: for a proxy", without(header("Proxy-Authorization", "Bearer "+testToken)), 401, errorResponse(403, "no token")},
		{"token: twice", func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+testToken) }, 401, errorResponse(403, "no token")},
		{"token: a right one before a wrong one", func(r *http.Request) { r.Header.Add("Authorization", "Bearer nope") }, 401, errorResponse(403, "no token")},
		{"token before the method", without(method("DELETE")), 401, errorResponse(403, "no token")},
		{"token before the type", without(header("Content-Type", "text/plain")), 401, errorResponse(403, "no token")},

		{"GET /mcp", method("GET"), 405, errorResponse(-32600, "messages")},
		{"DELETE /mcp", method("DELETE"), 405, errorResponse(-32600, "messages")},
		{"OPTIONS /mcp", method("OPTIONS"), 405, errorResponse(-32600, "messages")},
		{"a verb over another", func(r *http.Request) { r.Method = "GET"; r.Header.Set("X-Http-Method-Override", "POST") }, 405, errorResponse(-32600, "messages")},
		{"a path over another", without(func(r *http.Request) { path("/healthz")(r); r.Header.Set("X-Original-Url", "/metrics") }), 200, "ok\n"},
		{"unknown path", path("/mcp/x"), 404, errorResponse(-32600, "there")},
		{"unknown path of no protocol", path("/x"), 404, "there is nothing at this path\n"},
		{"a file outside", path("/healthz/../../etc/passwd"), 307, ""},
		{"what a token is for", without(path("/.well-known/oauth-protected-resource/mcp")), 200,
			`{"resource":"http://` + testHost + `/mcp","bearer_methods_supported":["header"],"resource_name":"agentsite"}` + "\n"},
		{"/healthz", without(path("/healthz")), 200, "ok\n"},
		{"POST /healthz", func(r *http.Request) { r.URL.Path = "/healthz" }, 405, "this path takes GET, HEAD\n"},
		{"/metrics", path("/metrics"), 200, "the metrics for " + testToken},
		{"/metrics without the token", without(path("/metrics")), 401, errorResponse(403, "no token")},
		{"/metrics with a wrong token", func(r *http.Request) { path("/metrics")(r); r.Header.Set("Authorization", "Bearer x") }, 401, errorResponse(403, "a wrong token")},
		{"a stranger's key", without(stranger), 200, good},
		{"a stranger's key and a wrong token", func(r *http.Request) { stranger(r); r.Header.Set("Authorization", "Bearer nope") }, 401, errorResponse(403, "a wrong token")},
		{"/metrics for a stranger's key", without(func(r *http.Request) { stranger(r); path("/metrics")(r) }), 403, errorResponse(403, "no token")},
		{"an owner's route for a stranger's key", without(func(r *http.Request) { stranger(r); path("/owners")(r) }), 403, errorResponse(403, "no token")},
		{"an owner's route", func(r *http.Request) { path("/owners")(r); r.Header.Set("Authorization", "Bearer also-owner") }, 200, "the owner's for also-owner"},
		{"an owner's route for another", path("/owners"), 403, errorResponse(403, "this is for")},
		{"an owner's route without the token", without(path("/owners")), 401, errorResponse(403, "no token")},
		{"/help", without(path("/help")), 200, string(helpPage)},

		{"its own page", header("Sec-Fetch-Site", "same-origin"), 200, good},
		{"no page", header("Sec-Fetch-Site", "none"), 200, good},
		{"a page of another site", header("Sec-Fetch-Site", "cross-site"), 403, errorResponse(403, "another page")},
		{"a page of another port", header("Sec-Fetch-Site", "same-site"), 403, errorResponse(403, "another page")},
		{"two pages", func(r *http.Request) { r.Header["Sec-Fetch-Site"] = []string{"same-origin", "cross-site"} }, 403, errorResponse(403, "another page")},
		{"a picture in another page", without(func(r *http.Request) { fetched(r, "no-cors", "image") }), 403, errorResponse(403, "another page")},
		{"a frame in another page", without(func(r *http.Request) { fetched(r, "navigate", "iframe") }), 403, errorResponse(403, "another page")},
		{"a link in another page", without(func(r *http.Request) { fetched(r, "navigate", "document") }), 200, "ok\n"},
		{"a form in another page", func(r *http.Request) { fetched(r, "navigate", "document"); r.Method = "POST" }, 403, errorResponse(403, "another page")},

		{"Content-Type: missing", func(r *http.Request) { r.Header.Del("Content-Type") }, 415, errorResponse(-32600, contentType)},
		{"Content-Type: text/plain", header("Content-Type", "text/plain"), 415, errorResponse(-32600, contentType)},
		{"Content-Type: a form", header("Content-Type", "application/x-www-form-urlencoded"), 415, errorResponse(-32600, contentType)},
		{"Content-Type: parts", header("Content-Type", "multipart/form-data; boundary=x"), 415, errorResponse(-32600, contentType)},
		{"Content-Type: two in one", header("Content-Type", "application/json, application/cbor"), 415, errorResponse(-32600, contentType)},
		{"Content-Type: longer", header("Content-Type", "application/json-seq"), 415, errorResponse(-32600, contentType)},
		{"Content-Type: with charset", header("Content-Type", "Application/JSON ; charset=utf-8"), 200, good},

		{"an older revision", header("Mcp-Protocol-Version", "2025-11-25"), 200, "legacy POST " + echoing},
		{"no revision", func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version") }, 200, "legacy POST " + echoing},
		{"a session", func(r *http.Request) {
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
			r.Header.Set("Mcp-Session-Id", "x")
		}, 200, "legacy POST " + echoing},
		{"a session's stream", func(r *http.Request) {
			r.Method = "GET"
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
			r.Header.Set("Mcp-Session-Id", "x")
		}, 200, "legacy GET " + echoing},
		{"a session of a revision without sessions", header("Mcp-Session-Id", "x"), 200, good},
		{"a session without the token", without(header("Mcp-Session-Id", "x")), 401, errorResponse(403, "no token")},
		{"no revision, but a method", func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version"); r.Header.Set("Mcp-Method", "echo") }, 200, good},
		{"no revision and a handshake", func(r *http.Request) {
			r.Header.Del("Mcp-Protocol-Version")
			r.Header.Set("Mcp-Method", "initialize")
		}, 200, "legacy POST " + echoing},
	}
	h := Handler(options(nil))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(echoing)
			tt.change(r)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || (tt.status != 307 && !says(w.Body.String(), tt.says)) {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, tt.status, tt.says)
			}
			want := ""
			if w.Code == 401 {
				want = `Bearer realm="agentsite", resource_metadata="` + Base(r) + `/.well-known/oauth-protected-resource` + r.URL.Path + `"`
			}
			if got := w.Header().Get("WWW-Authenticate"); strings.TrimSuffix(got, `, error="invalid_token"`) != want {
				t.Errorf("WWW-Authenticate of a %d: %q", w.Code, got)
			}
			if got := w.Header().Get("Allow"); r.URL.Path == "/mcp" && (got == "POST") != (w.Code == 405) {
				t.Errorf("Allow of a %d: %q", w.Code, got)
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("a page elsewhere is let in: %s", name)
				}
			}
			if w.Code != 403 && w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the type may be guessed")
			}
		})
	}
}

// TestResourceMetadata: the document that a challenge names is of the URL that was used, in every way to the
// site, as RFC 9728 (section 3.3) has clients check.
func TestResourceMetadata(t *testing.T) {
	h := Handler(options(nil))
	ask := func(url string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		return w
	}
	for _, url := range []string{
		"http://" + testHost + "/mcp", "http://localhost:8473/mcp/", "https://greenhouse.local:8473/mcp", "https://" + testHost + "/metrics",
	} {
		_, rest, _ := strings.Cut(ask(url).Header().Get("WWW-Authenticate"), `resource_metadata="`)
		at, _, _ := strings.Cut(rest, `"`)
		var described struct {
			Resource string   `json:"resource"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		w := ask(at)
		if err := json.Unmarshal(w.Body.Bytes(), &described); err != nil || described.Resource != url || !slices.Equal(described.Methods, []string{"header"}) {
			t.Errorf("%s: %q says %s %v", url, at, w.Body, err)
		}
	}
	if w := ask("http://elsewhere.example:8473/mcp"); w.Code != 403 || strings.Contains(fmt.Sprint(w.Header()), "elsewhere") {
		t.Errorf("a name of others: %d %v", w.Code, w.Header())
	}
}

// TestNoRoute: a wrong verb is answered in the form of its route, an unknown path in that of its protocol.
func TestNoRoute(t *testing.T) {
	o := options(nil)
	none := func(http.ResponseWriter, *http.Request, Caller) {}
	o.Routes = append(o.Routes,
		Route{Pattern: "POST /rpc", Admission: Principals, Serve: none},
		Route{Pattern: "PUT /things/{name}", Admission: Principals, Serve: none, Refuse: RefuseProblem},
		Route{Pattern: "GET /things/{name}", Admission: Principals, Serve: none, Refuse: RefuseProblem},
		Route{Pattern: "GET /.well-known/rpc", Admission: Readers, Serve: none, Refuse: RefuseProblem},
	)
	h := Handler(o)
	const text, messages, problems = "text/plain; charset=utf-8", "application/json", "application/problem+json"
	for _, tt := range []struct {
		method, path string
		status       int
		media, allow string
	}{
		{"GET", "/rpc", 405, messages, "POST"},
		{"PUT", "/rpc/", 405, messages, "POST"},
		{"POST", "/rpc/x", 404, messages, ""},
		{"POST", "/things/x", 405, problems, "GET, HEAD, PUT"},
		{"PUT", "/things/x/y", 404, problems, ""},
		{"GET", "/things", 404, problems, ""},
		{"POST", "/.well-known/rpc", 405, text, "GET, HEAD"},
		{"GET", "/.well-known/x", 404, text, ""},
		{"POST", "/help", 405, text, "GET, HEAD"},
		{"GET", "/x", 404, text, ""},
		{"PROPFIND", "/things/x", 405, problems, "GET, HEAD, PUT"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, "http://"+testHost+tt.path, nil))
		if w.Code != tt.status || w.Header().Get("Content-Type") != tt.media || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, w.Code, w.Header())
		}
		if tt.media != text && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %s", tt.method, tt.path, w.Body)
		}
	}
}

// TestAdmittedPrincipal checks that a route gets the principal of its admission.
func TestAdmittedPrincipal(t *testing.T) {
	var got []string
	o := options(nil)
	o.Callers = callers(func(bearer string) (principal.Principal, error) {
		return principal.Principal{ID: "principal of " + bearer}, nil
	})
	o.Routes = []Route{{Pattern: "/who", Admission: Strangers, Serve: func(_ http.ResponseWriter, _ *http.Request, c Caller) { got = append(got, c.Who.ID) }}}
	h := Handler(o)
	for _, bearer := range []string{"a", "b"} {
		r := httptest.NewRequest("GET", "http://"+testHost+"/who", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if !slices.Equal(got, []string{"principal of a", "principal of b"}) {
		t.Errorf("the route has %v", got)
	}
}

func TestHelpPageRunsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(options(nil)).ServeHTTP(w, httptest.NewRequest("GET", "http://"+testHost+"/help", nil))
	if got := w.Header().Get("Content-Security-Policy"); got != "default-src 'none'; style-src 'unsafe-inline'" {
		t.Error(got)
	}
	if strings.Contains(w.Body.String(), "<script") || strings.Contains(w.Body.String(), testHost) {
		t.Error("the page holds a script, or says something of this site")
	}
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		says       string
	}{
		{"a request", echoing, 200, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"nope"}`, 202, ""},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, 404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"there is no method \"nope\"`},
		{"malformed for its method", `{"jsonrpc":"2.0","id":1,"method":"malformed"}`, 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"malformed"}}`},
		{"refused by its method", `{"jsonrpc":"2.0","id":1,"method":"refused"}`, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":409,"message":"not now"}}`},
		{"no JSON", `{`, 400, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"not valid JSON`},
		{"nothing", ``, 400, ``},
		{"a batch", `[` + echoing + `]`, 400, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"batches`},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"\"method\"`},
	}
	h := Handler(options(nil))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(tt.body))
			if w.Code != tt.status || (tt.name != "nothing" && !says(w.Body.String(), tt.says)) {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, tt.status, tt.says)
			}
		})
	}
}

func TestBodyLimits(t *testing.T) {
	exact := func(n int) string {
		const head, tail = `{"jsonrpc":"2.0","id":1,"method":"refused","params":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	tooLong := errorResponse(-32600, "a message has at most")
	const fine = `{"jsonrpc":"2.0","id":1,"error":{"code":409,"message":"not now"}}`
	for _, tt := range []struct {
		name    string
		size    int
		chunked bool
		status  int
		says    string
	}{
		{"as long as may be", rpc.MaxMessage, false, 200, fine},
		{"as long as may be, in chunks", rpc.MaxMessage, true, 200, fine},
		{"one too long", rpc.MaxMessage + 1, false, 413, tooLong},
		{"one too long, in chunks", rpc.MaxMessage + 1, true, 413, tooLong},
		{"far too long, in chunks", 3 * rpc.MaxMessage, true, 413, tooLong},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(tt.name+", "+version, func(t *testing.T) {
				r := request(exact(tt.size))
				r.Header.Set("Mcp-Protocol-Version", version)
				if tt.chunked {
					r.ContentLength = -1
				}
				w := httptest.NewRecorder()
				Handler(options(nil)).ServeHTTP(w, r)
				want := tt.says
				if tt.status == 200 && version < rpc.Revision {
					want = "legacy POST " + exact(tt.size)
				}
				if w.Code != tt.status || !says(w.Body.String(), want) {
					t.Errorf("got %d %.200s, want %d %.200s", w.Code, w.Body, tt.status, want)
				}
			})
		}
	}
}

// TestPanic: a panic in a route is logged, and ends its request alone.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	o := options(nil)
	o.Routes = append(o.Routes, Route{Pattern: "GET /broken", Admission: Public, Serve: func(http.ResponseWriter, *http.Request, Caller) { panic("out of luck") }})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || !strings.Contains(log.String(), "out of luck") || !strings.Contains(log.String(), "GET /broken") {
			t.Errorf("%v\n%s", p, log.String())
		}
	}()
	r := request("")
	r.Method, r.URL.Path = "GET", "/broken"
	Handler(o).ServeHTTP(httptest.NewRecorder(), r)
}

// TestRoutes: the listed routes are served, also with a slash at their end, and no others.
func TestRoutes(t *testing.T) {
	h := Handler(options(nil))
	code := func(verb, path string) int {
		r, w := request(""), httptest.NewRecorder()
		r.Method, r.URL.Path = verb, path
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, pattern := range Patterns(options(nil).Routes, Owners) {
		verb, path, ok := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
		if !ok {
			verb, path = "POST", verb
		}
		if got := code(verb, path); got == 404 || got == 405 {
			t.Errorf("%s: %d", pattern, got)
		} else if with := code(verb, strings.TrimSuffix(path, "/")+"/"); with != got {
			t.Errorf("%s: %d, and %d with a slash", pattern, got, with)
		}
	}
	if got := Patterns(options(nil).Routes, Public); len(got) != 3 || slices.Contains(got, "/mcp") {
		t.Error("public:", got)
	}
	for _, path := range []string{"/other", "/mcp/other", "/MCP", "/mcp.", "/mcp\x00", "/mcp ", "/mcp;x=1", `/\mcp`, "/metrics/other/", "/mcp/x/", "/METRICS", "/metrics.json", "/debug/pprof/", "/owner"} {
		if got := code("GET", path); got != 404 {
			t.Errorf("%s: %d", path, got)
		}
	}
}
