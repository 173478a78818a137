package web

import (
	_ "embed"
	"fmt"
	"net/http"
)

//go:embed help.html
var helpPage []byte

// metadataPath is where RFC 9728 describes a resource.
const metadataPath = "/.well-known/oauth-protected-resource"

// PublicRoutes returns the routes that answer everybody alike and reveal only that a site is there.
// These are its health, a help page for browsers, and how to send a token to the resource.
func PublicRoutes(resource string) []Route {
	return []Route{
		{Pattern: "GET /healthz", Admission: Public, Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) { w.Write([]byte("ok\n")) }},
		{Pattern: "GET /{$}", Admission: Public, Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			w.Write(helpPage)
		}},
		{Pattern: "GET " + metadataPath + "/mcp", Admission: Public, Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) { // names no issuer: only the owner gives tokens
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"resource":%q,"bearer_methods_supported":["header"],"resource_name":"agentsite"}`+"\n", resource)
		}},
	}
}
