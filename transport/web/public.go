package web

import (
	_ "embed"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

//go:embed help.html
var helpPage []byte

// metadataPath is where RFC 9728 describes a resource.
const metadataPath = "/.well-known/oauth-protected-resource"

// PublicRoutes returns the routes that answer everybody alike and reveal only that a site is there.
// These are its health, a help page for browsers, and how to send a token to
// the resource at a path, whether there is one or not.
func PublicRoutes() []Route {
	return []Route{
		HealthRoute(),
		{Pattern: "GET /help", Admission: Public, Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			w.Write(helpPage)
		}},
		{Pattern: "GET " + metadataPath + "/{path...}", Admission: Public, Serve: DescribeResource},
	}
}

// HealthRoute returns the route that says that the site answers, and no more.
func HealthRoute() Route {
	return Route{Pattern: "GET /healthz", Admission: Public, Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) { w.Write([]byte("ok\n")) }}
}

// DescribeResource answers RFC 9728 for a path. It names no issuer: only the owner gives tokens.
func DescribeResource(w http.ResponseWriter, r *http.Request, _ Caller) {
	text, _ := json.Marshal(struct { // it has a form in JSON
		Resource string   `json:"resource"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{Base(r) + strings.TrimPrefix(r.URL.EscapedPath(), metadataPath), []string{"header"}, "agentsite"})
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(text, '\n'))
}
