//go:build e2e

package mcp

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// startProxy serves a site at an address of its own until the test ends, and adds the token, for
// tools that cannot send one. backend is http://host:port; the address returned has the same
// form. It replaces its own address in Host and Origin by the site's; a foreign name passes
// unchanged, so that the site's check of names is still tested.
func startProxy(t testing.TB, backend, token string) string {
	t.Helper()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	var own string
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // streams
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.Host = r.In.Host; r.In.Host == own {
				r.Out.Host = to.Host
			}
			if r.In.Header.Get("Origin") == "http://"+own {
				r.Out.Header.Set("Origin", "http://"+to.Host)
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A site may begin to answer before the proxy has seen the end of the body. Without full
		// duplex the body, and the answer with it, would then be cut off.
		http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}))
	own = s.Listener.Addr().String()
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}
