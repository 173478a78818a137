package web

import (
	"net/http"

	"agentsite/device"
)

// SignIn is the one address of a site at which clients sign in by OAuth, and use what they get by that. It
// is from the configuration and never from a header. The methods are safe on a nil SignIn, which is of a site
// where nobody can.
type SignIn struct {
	URL   string // of MCP: https://garden.example.org/mcp
	Base  string // the URL without a path
	Host  string // of the URL, as requests name it
	Scope string // the least that a client asks for
	// Token reports whether a bearer token has the form of those that such clients get.
	Token func(text string) bool
	// Refused is told of a client that is asked to sign in, and why; nil for nobody.
	Refused func(r *http.Request, why string)
}

// elsewhere is, in the context of a request, true for one that a page of another origin sent.
type elsewhere struct{}

func fromElsewhere(r *http.Request) bool { return r.Context().Value(elsewhere{}) != nil }

// anyOrigin reports whether a request says that it is from a page, and is for a route that pages of any
// origin may call.
func (s *SignIn) anyOrigin(r *http.Request, mux *http.ServeMux, known map[string]*Route) bool {
	if s == nil || r.Host != s.Host || len(r.Header.Values("Origin")) != 1 {
		return false
	}
	if method := r.Header.Get("Access-Control-Request-Method"); isPreflight(r) {
		r = r.WithContext(r.Context())
		r.Method = method
	}
	_, pattern := mux.Handler(r)
	return known[pattern] != nil && known[pattern].AnyOrigin
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// allowOrigin lets the sender's page read the answer (CORS), without anything that the browser has of this
// site. It answers a preflight and returns false.
func allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, ETag, Mcp-Session-Id, Mcp-Protocol-Version")
	if !isPreflight(r) {
		return true
	}
	h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
	if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// misplaced refuses a client's token at another address of the site, or for something else than it is for.
func (s *SignIn) misplaced(bearer string, r *http.Request, route *Route) error {
	if s == nil || r.Host == s.Host && route.AnyOrigin || !s.Token(bearer) {
		return nil
	}
	return device.Faultf(device.Denied, "this token is for %s alone", s.URL)
}

// challenge is Route.challenge where clients sign in, "" elsewhere.
func (s *SignIn) challenge(route *Route, at *http.Request, bearer string) string {
	if s == nil || at.Host != s.Host || !route.AnyOrigin {
		return ""
	}
	failed, why := "", "it has no token yet, and is told where to sign in"
	if bearer != "" {
		failed, why = "invalid_token", "its token does not count here: it is told to sign in again"
	}
	if s.Refused != nil {
		s.Refused(at, why)
	}
	return s.Challenge(failed, s.Scope)
}

// Challenge returns the header that tells a client where to sign in and what to ask for there (RFC 6750,
// RFC 9728). failed is the code of an error, "" for none.
func (s *SignIn) Challenge(failed, scope string) string {
	c := `Bearer realm="agentsite"`
	if failed != "" {
		c += `, error="` + failed + `"`
	}
	return c + `, scope="` + scope + `", resource_metadata="` + s.Base + metadataPath + s.URL[len(s.Base):] + `"`
}
