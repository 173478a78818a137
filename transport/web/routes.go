package web

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// Admission is the authentication that a route requires. Each level requires more than the one
// before.
type Admission uint8

const (
	Public     Admission = iota // nothing
	Readers                     // nothing; a token or a key that is sent has to count, and its holder may see more
	Strangers                   // a token that counts or a key, which the site need not know: its holder may claim the site
	Principals                  // a token or a key that counts
	Owners                      // the token or the key of an owner
)

// Route is an entry of the table of routes. Serve is called once its admission is given.
type Route struct {
	Pattern   string // of net/http's ServeMux: "GET /healthz", or "/mcp" for every method
	Admission Admission
	Serve     func(w http.ResponseWriter, r *http.Request, c Caller)
	Signed    Signatures // by which a caller may prove a key instead of by a token or TLS; nil for none
	Problems  bool       // refusals are answered as application/problem+json
}

// Caller is the authenticated sender of a request. On a Public route it is empty.
type Caller struct {
	Evidence rpc.Evidence // without a Principal for a stranger
	Account  string       // whose limits count; "" for a stranger

	bodies   *bodyLimits
	signed   *signedRequest // nil where the sender signed nothing
	problems bool
}

// Options configure a site's handler.
type Options struct {
	// Resource is the URL for which tokens count.
	Resource string
	// Hosts are the values of the Host header that are served, host:port, besides the
	// address that a connection came to.
	Hosts []string
	// Admit names the account of a caller, or refuses evidence that proves nothing, before
	// anything is read. The principal becomes the evidence's, for this request.
	Admit func(rpc.Evidence) (principal any, account string, err error)
	// IsOwner reports whether evidence is an owner's; nil without routes for owners.
	IsOwner func(rpc.Evidence) bool
	// Routes is the table of routes. No two have the same pattern.
	Routes []Route
}

// Handler serves the routes, with a slash at the end of their paths as without. Each request passes the
// same checks in the same order: Host, Origin, pattern, admission.
func Handler(o Options) http.Handler {
	s := &server{Options: o, bodies: newBodyLimits()}
	mux := http.NewServeMux()
	for _, route := range o.Routes {
		serve := func(w http.ResponseWriter, r *http.Request) {
			defer logPanic(route.Pattern)
			if c, ok := s.admit(w, r, &route); ok {
				route.Serve(w, r, c)
			}
		}
		mux.HandleFunc(route.Pattern, serve)
		if !strings.HasSuffix(route.Pattern, "/{$}") { // clients join the URL of a base with nothing
			mux.HandleFunc(route.Pattern+"/{$}", serve)
		}
	}
	return s.checkOrigin(mux)
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

// checkOrigin returns a handler that refuses a wrong Host and a wrong Origin, in that order,
// and passes everything else to next.
func (s *server) checkOrigin(next http.Handler) http.Handler {
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
		if !slices.Contains(s.Hosts, r.Host) && !namesLocalAddress(r) {
			refuse(w, http.StatusForbidden, fmt.Sprintf("this site is not called %.80q; a name of its own goes under http: hosts: in agentsite.yaml", r.Host))
			return
		}
		if o := r.Header.Values("Origin"); len(o) > 0 && !(len(o) == 1 && (slices.Contains(origins, o[0]) || r.TLS != nil && o[0] == "https://"+r.Host)) {
			refuse(w, http.StatusForbidden, fmt.Sprintf("a page of %.80q may not call this site", o[0]))
			return
		}
		w.Header()["X-Content-Type-Options"] = nosniff
		next.ServeHTTP(w, r)
	})
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
	c.bodies, c.problems = s.bodies, route.Problems
	need := route.Admission
	if need == Public {
		return c, true
	}
	ev := &c.Evidence
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			ev.Bearer = token
		}
	}
	if ev.Peer = proved(r.TLS); r.TLS == nil {
		ev.Local = rpc.LocalLoopback
	}
	var signed *Signed
	if route.Signed != nil && ev.Bearer == "" {
		var err error
		if signed, err = route.Signed.Read(r); err != nil {
			return c, route.unproved(w, err)
		}
		if signed != nil {
			ev.Peer, c.signed = signed.Peer, &signedRequest{signed, route}
		}
	}
	if need == Readers && ev.Peer == "" && ev.Bearer == "" {
		return c, true
	}
	principal, account, err := s.Admit(*ev)
	if err == nil && signed != nil {
		if err := signed.Use(account); err != nil {
			return c, route.unproved(w, err)
		}
	}
	switch {
	case err == nil:
		c.Account, ev.Principal = account, principal
		prove(r.Context(), account)
	case ev.Peer == "" || ev.Bearer != "":
		w.Header().Set("WWW-Authenticate", s.challenge(*ev))
		if route.Signed != nil {
			route.Signed.Challenge(w.Header(), nil)
		}
		c.refuse(w, http.StatusUnauthorized, err.Error())
		return c, false
	case need > Strangers:
		c.refuse(w, http.StatusForbidden, err.Error())
		return c, false
	}
	if need == Owners && !s.IsOwner(*ev) {
		c.refuse(w, http.StatusForbidden, "this is for the site's owners")
		return c, false
	}
	return c, true
}

// challenge returns the header that tells a caller where the use of a token is described.
func (s *server) challenge(ev rpc.Evidence) string {
	c := `Bearer realm="agentsite", resource_metadata="` + strings.TrimSuffix(s.Resource, "/mcp") + metadataPath + `/mcp"`
	if ev.Bearer != "" {
		c += `, error="invalid_token"`
	}
	return c
}

// refuse answers a request that never became a call. The body is a JSON-RPC error without an id, as
// MCP permits. Its code is that of transport/mcp for a fault of the same kind.
func refuse(w http.ResponseWriter, status int, why string) {
	code := rpc.CodeInvalidRequest
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = http.StatusForbidden // denied
	case http.StatusServiceUnavailable:
		code = rpc.CodeBusy
	}
	write(w, status, &rpc.Error{Code: code, Message: why})
}

// refuse is refuse in the form of the caller's route.
func (c Caller) refuse(w http.ResponseWriter, status int, why string) {
	if !c.problems {
		refuse(w, status, why)
		return
	}
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
