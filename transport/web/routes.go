package web

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// Admission is the authentication that a route requires. Each level requires more than the one
// before.
type Admission uint8

const (
	Public     Admission = iota // nothing
	Readers                     // nothing; a token or a key that is sent has to count, and its holder may see more
	Strangers                   // a token that counts or any key, whose holder may claim the site
	Principals                  // a token or a key that counts
	Owners                      // the token or the key of an owner
)

// Route is an entry of the table of routes. Serve is called once its admission is given.
type Route struct {
	Pattern   string // of net/http's ServeMux: "GET /healthz", or "/mcp" for every method
	Admission Admission
	Serve     func(w http.ResponseWriter, r *http.Request, c Caller)
	Signed    Signatures // by which a caller may prove a key instead of by a token or TLS; nil for none
	Refuse    Refusal    // nil for RefuseRPC
	// AnyOrigin lets pages of any origin call the route at SignIn's host, with a token of a client that
	// signed in or with nothing.
	AnyOrigin bool
}

// Refusal answers a request that never became a call, in the form of a protocol.
type Refusal func(w http.ResponseWriter, status int, why string)

// Caller is the authenticated sender of a request. On a Public route it is empty.
type Caller struct {
	rpc.Sender

	bodies *bodyLimits
	route  *Route
	signed *Signed // nil where the sender signed nothing
}

// Options configure a site's handler.
type Options struct {
	// Hosts are the values of the Host header that are served, host:port, besides the
	// address that a connection came to.
	Hosts []string
	// NamesOnly refuses that address.
	NamesOnly bool
	// Behind says that a proxy passes requests on for pages under its own names, and nobody else reaches the
	// handler. Any Host is served, and pages of that host may call.
	Behind bool
	// Callers authenticates the sender of a request, once, before its body is read.
	Callers Callers
	// Routes is the table of routes. No two have the same pattern.
	Routes []Route
	SignIn *SignIn // nil where clients cannot sign in
}

// Callers returns the principals of callers, or why there is none.
type Callers interface {
	// Key returns the principal of a peer ID that TLS or a signature proved.
	Key(peer string) (principal.Principal, error)
	// Bearer returns the principal of a token, "" for none. here says that the request came over
	// this machine's loopback interface.
	Bearer(token string, here bool) (principal.Principal, error)
}

// Handler serves the routes, with a slash at the end of their paths as without. Each request passes the
// same checks in the same order: Host, Origin, the page of a browser, pattern, admission.
func Handler(o Options) http.Handler {
	s := &server{Options: o, bodies: newBodyLimits()}
	mux := http.NewServeMux()
	known := make(map[string]*Route)
	for _, route := range o.Routes {
		serve := func(w http.ResponseWriter, r *http.Request) {
			defer logPanic(route.Pattern)
			if c, ok := s.admit(w, r, &route); ok {
				route.Serve(w, r, c)
			}
		}
		patterns := []string{route.Pattern}
		// Clients join the URL of a base with nothing.
		if !strings.HasSuffix(route.Pattern, "/{$}") && !strings.HasSuffix(route.Pattern, "...}") {
			patterns = append(patterns, route.Pattern+"/{$}")
		}
		for _, pattern := range patterns {
			mux.HandleFunc(pattern, serve)
			known[pattern] = &route
		}
	}
	mux.HandleFunc(anyPath, func(w http.ResponseWriter, r *http.Request) { s.noRoute(w, r, mux, known) })
	return s.checkOrigin(mux, known)
}

// anyPath is the pattern of requests that no route takes.
const anyPath = "/"

// noRoute answers a request that no route takes: a wrong verb in the form of the route, and an unknown path
// in the form of the last route with the same beginning. Outside the protocols' paths it answers in text.
func (s *server) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux, known map[string]*Route) {
	var allowed []string
	var at *Route
	for _, verb := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		try := r.WithContext(r.Context())
		try.Method = verb
		if _, pattern := mux.Handler(try); known[pattern] != nil {
			allowed, at = append(allowed, verb), known[pattern]
		}
	}
	status, why := http.StatusNotFound, "there is nothing at this path"
	if at != nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		status, why = http.StatusMethodNotAllowed, "this path takes "+strings.Join(allowed, ", ")
	} else {
		for i := range s.Routes {
			if s.Routes[i].start() == start(r.URL.Path) {
				at = &s.Routes[i]
			}
		}
	}
	if at == nil || at.Admission == Public || at.start() == wellKnown {
		http.Error(w, why, status)
		return
	}
	at.refuse(w, status, why)
}

// wellKnown is the beginning of paths of all protocols.
const wellKnown = ".well-known"

// start returns the first segment of a path.
func start(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

func (r *Route) start() string {
	_, path, _ := strings.Cut(r.Pattern, "/")
	return start(path)
}

// logPanic, deferred, logs a panic in a route, which ends the request alone. net/http would log it
// where nobody looks.
func logPanic(pattern string) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		slog.Error("a defect: something panicked", "in", pattern, "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

type server struct {
	Options
	bodies *bodyLimits
}

// Patterns returns the patterns of routes that ask for at most that admission.
func Patterns(routes []Route, most Admission) (all []string) {
	for _, r := range routes {
		if r.Admission <= most {
			all = append(all, r.Pattern)
		}
	}
	return all
}

// checkOrigin returns a handler that refuses a wrong Host, a wrong Origin and what a browser sends for
// another page, in that order, and passes everything else to next. Routes for any origin are for other
// pages, too.
func (s *server) checkOrigin(next *http.ServeMux, known map[string]*Route) http.Handler {
	origins := make([]string, 0, 2*len(s.Hosts))
	for _, h := range s.Hosts {
		origins = append(origins, "http://"+h, "https://"+h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The deadline of a request with a body is lifted by ReadBody, and stays if it is refused:
		// net/http reads such bodies to the end.
		if r.ContentLength == 0 {
			http.NewResponseController(w).SetReadDeadline(time.Time{})
		}
		if !s.Behind && !slices.Contains(s.Hosts, r.Host) && (s.NamesOnly || !namesLocalAddress(r)) {
			RefuseRPC(w, http.StatusForbidden, fmt.Sprintf(
				"this site is not called %.80q; a name of its own goes under http: hosts: in agentsite.yaml", r.Host))
			return
		}
		if s.SignIn.anyOrigin(r, next, known) {
			if !allowOrigin(w, r) {
				return
			}
			w.Header()["X-Content-Type-Options"] = nosniff
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), elsewhere{}, true)))
			return
		}
		ours := func(o string) bool {
			return slices.Contains(origins, o) || r.TLS != nil && o == "https://"+r.Host || s.Behind && ofProxy(o, r)
		}
		if o := r.Header.Values("Origin"); len(o) > 0 && !(len(o) == 1 && ours(o[0])) {
			RefuseRPC(w, http.StatusForbidden, fmt.Sprintf("a page of %.80q may not call this site", o[0]))
			return
		}
		if !ownPage(r) {
			RefuseRPC(w, http.StatusForbidden, "another page may not use this site")
			return
		}
		w.Header()["X-Content-Type-Options"] = nosniff
		next.ServeHTTP(w, r)
	})
}

// ofProxy reports whether an origin is the host that a browser called the proxy by, which may itself be behind one.
func ofProxy(origin string, r *http.Request) bool {
	_, host, ok := strings.Cut(origin, "://")
	return ok && (host == r.Host || host == r.Header.Get("X-Forwarded-Host"))
}

// ownPage reports whether a request is from a page of this site or from no page, as far as a browser says
// (Fetch Metadata). A link of another page may be followed.
func ownPage(r *http.Request) bool {
	switch site := r.Header.Values("Sec-Fetch-Site"); {
	case len(site) == 0:
		return true
	case len(site) == 1 && (site[0] == "same-origin" || site[0] == "none"):
		return true
	}
	return r.Method == http.MethodGet &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// namesLocalAddress reports whether the Host header is the address that the connection came to.
// Unlike a name, an address cannot be made to point here by somebody else.
func namesLocalAddress(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	named, err2 := netip.ParseAddrPort(r.Host)
	return err == nil && err2 == nil && named == netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// admit authenticates the sender of a request, as far as the route needs it, and answers a request
// that it refuses. It takes the token from the header and nowhere else.
func (s *server) admit(w http.ResponseWriter, r *http.Request, route *Route) (c Caller, ok bool) {
	c.bodies, c.route = s.bodies, route
	need := route.Admission
	if need == Public {
		return c, true
	}
	bearer := Bearer(r)
	switch {
	case !fromElsewhere(r):
		c.Key = proved(r.TLS)
	case !s.SignIn.Token(bearer): // a page has no key, and no place on this machine
		bearer = ""
	}
	var signed *Signed
	if route.Signed != nil && bearer == "" {
		var err error
		if signed, err = route.Signed.Read(r); err != nil {
			return c, route.unproved(w, err)
		}
		if signed != nil {
			c.Key, c.signed = signed.Peer, signed
		}
	}
	if need == Readers && c.Key == "" && bearer == "" {
		return c, true
	}
	if bearer == "" && c.Key != "" {
		c.Who, c.Refused = s.Callers.Key(c.Key)
	} else if c.Refused = s.SignIn.misplaced(bearer, r, route); c.Refused == nil {
		c.Who, c.Refused = s.Callers.Bearer(bearer, r.TLS == nil)
	}
	if c.Refused == nil && signed != nil {
		if err := signed.Use(c.Who.Account); err != nil {
			return c, route.unproved(w, err)
		}
	}
	switch {
	case c.Refused == nil:
		prove(r.Context(), c.Who.Account)
	case device.AsFault(c.Refused).Kind == device.Unavailable: // a refusal would have the client forget its token
		w.Header().Set("Retry-After", "10")
		route.refuse(w, http.StatusServiceUnavailable, c.Refused.Error())
		return c, false
	case c.Key == "" || bearer != "":
		w.Header().Set("WWW-Authenticate", cmp.Or(s.SignIn.challenge(route, r, bearer), route.challenge(r, bearer)))
		if route.Signed != nil {
			route.Signed.Challenge(w.Header(), nil)
		}
		route.refuse(w, http.StatusUnauthorized, c.Refused.Error())
		return c, false
	case need > Strangers:
		route.refuse(w, http.StatusForbidden, c.Refused.Error())
		return c, false
	}
	if need == Owners && !c.Who.Owner {
		route.refuse(w, http.StatusForbidden, "this is for the site's owners")
		return c, false
	}
	return c, true
}

// Bearer returns the token that a request has in its header, "" for none.
func Bearer(r *http.Request) string {
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return token
		}
	}
	return ""
}

// challenge returns the header that asks for a token. It names the description of the URL that was used, as
// RFC 9728 (section 3.3) has clients check; none where names of things are in the path.
func (r *Route) challenge(at *http.Request, bearer string) string {
	c := `Bearer realm="agentsite"`
	if !strings.Contains(r.Pattern, "{") {
		c += `, resource_metadata="` + Base(at) + metadataPath + at.URL.EscapedPath() + `"`
	}
	if bearer != "" {
		c += `, error="invalid_token"`
	}
	return c
}

// Base returns the URL under which a request reached the site, without a slash at its end. Its host
// was checked against the allow-list.
func Base(r *http.Request) string {
	if r.TLS == nil {
		return "http://" + r.Host
	}
	return "https://" + r.Host
}

func (r *Route) refuse(w http.ResponseWriter, status int, why string) {
	if r.Refuse == nil {
		RefuseRPC(w, status, why)
		return
	}
	r.Refuse(w, status, why)
}

// RefuseRPC is the Refusal of JSON-RPC: an error without an id, as MCP permits. Its code is that of
// transport/mcp for a fault of the same kind.
func RefuseRPC(w http.ResponseWriter, status int, why string) {
	code := rpc.CodeInvalidRequest
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = http.StatusForbidden // denied
	case http.StatusServiceUnavailable:
		code = rpc.CodeBusy
	}
	write(w, status, &rpc.Error{Code: code, Message: why})
}

// RefuseProblem is the Refusal of protocols whose errors are application/problem+json (RFC 9457).
func RefuseProblem(w http.ResponseWriter, status int, why string) {
	text, _ := json.Marshal(problem{http.StatusText(status), status, why}) // it has a form in JSON
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(text)
}

// problem is RFC 9457.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}
