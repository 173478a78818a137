// Package oauth is the site's own authorization server (OAuth 2.1, as MCP asks for it). A client that knows
// nothing but the site's URL registers, sends its user to the site, and gets tokens once an owner has allowed
// it. What it may do is an ordinary grant that the owner signs, and is decided at each call.
//
// A browser that waits for the owner can do nothing but wait: there is no form and no script.
package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"agentsite/agents/principal"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/quota"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Options are the parameters of a Server.
type Options struct {
	Key    identity.Key // of the site
	Name   string       // of the site
	URL    string       // of MCP, at which clients sign in: https://garden.example.org/mcp
	Access *access.Store
	// Lacks returns why a client may not call a tool, of which the owner is told; nil for one that it may call.
	Lacks func(who principal.Principal, tool string, args rpc.Raw) error
	// Fetch fetches the metadata of a client from its https URL; nil for public addresses alone.
	Fetch Fetch
}

// Server is an authorization server. It is safe for concurrent use. What waits for an owner is in memory only,
// and bounded; nothing is stored before an owner has allowed it.
type Server struct {
	Options
	base, host string
	secret     [32]byte // from which identifiers and tokens are made
	documents  documents
	rate       quota.RateLimiter // of requests, by network
	refreshes  quota.RateLimiter // of refreshes, which are stored, by sign-in
	logged     quota.RateLimiter // of lines in the log, whoever causes them
	loggedOf   quota.RateLimiter // of these, by network
	arrivals   arrivals

	mu      sync.Mutex
	waiting []*request
}

// New returns the authorization server of a site.
func New(o Options) *Server {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		panic("oauth: " + o.URL + " is no URL") // it is made of checked parts
	}
	s := &Server{
		Options: o, base: strings.TrimSuffix(o.URL, u.Path), host: u.Host,
		rate:      quota.RateLimiter{Rate: quota.Rate{PerSecond: 1, Burst: 60}},
		refreshes: quota.RateLimiter{Rate: quota.Rate{PerSecond: 1. / 300, Burst: 20}},
		logged:    quota.RateLimiter{Rate: quota.Rate{PerSecond: 0.1, Burst: 60}},
		loggedOf:  quota.RateLimiter{Rate: quota.Rate{PerSecond: 0.01, Burst: 10}},
	}
	s.secret = sha256.Sum256(o.Key.Derive("oauth").Private().Seed())
	s.documents = newDocuments(o.Fetch)
	return s
}

// mac authenticates a text for a purpose.
func (s *Server) mac(purpose, text string) []byte {
	m := hmac.New(sha256.New, s.secret[:])
	m.Write([]byte(purpose + "\x00" + text))
	return m.Sum(nil)
}

// SignIn returns the address at which clients sign in, for web.Options.
func (s *Server) SignIn() *web.SignIn {
	return &web.SignIn{URL: s.URL, Base: s.base, Host: s.host, Scope: access.AllScopes()[0],
		Token:   func(text string) bool { return strings.HasPrefix(text, access.SignInPrefix) },
		Refused: func(r *http.Request, why string) { s.arrived(r); s.refused(r, why) }}
}

const (
	waitPattern  = "GET /authorize/{id}"
	wellKnown    = "/.well-known/"
	resourcePath = wellKnown + "oauth-protected-resource"
)

// Routes returns the routes of the server. They are for its own host, and not there on others.
func (s *Server) Routes() []web.Route {
	path := strings.TrimPrefix(s.URL, s.base)
	routes := []web.Route{
		{Pattern: "GET /authorize", Serve: s.authorize},
		{Pattern: waitPattern, Serve: s.wait},
		{Pattern: "POST /token", Serve: s.token, AnyOrigin: true},
		{Pattern: "POST /register", Serve: s.register, AnyOrigin: true},
		{Pattern: "POST /revoke", Serve: s.revoke, AnyOrigin: true},
	}
	document := func(doc any, paths ...string) {
		text, _ := json.Marshal(doc, json.Deterministic(true)) // it has a form in JSON
		for _, p := range paths {
			routes = append(routes, web.Route{Pattern: "GET " + p, AnyOrigin: true, Serve: func(w http.ResponseWriter, _ *http.Request, _ web.Caller) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Vary", "Origin")
				w.Write(text)
			}})
		}
	}
	// Clients try these in different orders, and stay with the first that answers.
	document(s.resource(), resourcePath, resourcePath+path, path+resourcePath)
	for _, name := range []string{"oauth-authorization-server", "openid-configuration"} {
		document(s.metadata(), wellKnown+name, wellKnown+name+path, path+wellKnown+name)
	}
	for i := range routes {
		r := &routes[i]
		r.Refuse = refuse
		serve := r.Serve
		r.Serve = func(w http.ResponseWriter, q *http.Request, c web.Caller) {
			switch {
			case q.Host == s.host:
				if r.Pattern != waitPattern {
					s.arrived(q)
				}
				serve(w, q, c)
			case strings.HasSuffix(r.Pattern, resourcePath+path):
				web.DescribeResource(w, q, c)
			default:
				http.Error(w, "clients sign in at "+s.base, http.StatusNotFound)
			}
		}
	}
	return routes
}

// resource describes what the tokens are for (RFC 9728).
func (s *Server) resource() any {
	return map[string]any{
		"resource": s.URL, "authorization_servers": []string{s.base}, "bearer_methods_supported": []string{"header"},
		"scopes_supported": access.AllScopes()[:1], "resource_name": s.Name,
	}
}

// metadata describes the server (RFC 8414), under the names of OpenID Connect, too.
func (s *Server) metadata() any {
	methods := []string{authNone, authBasic, authPost}
	return map[string]any{
		"issuer": s.base, "authorization_endpoint": s.base + "/authorize", "token_endpoint": s.base + "/token",
		"registration_endpoint": s.base + "/register", "revocation_endpoint": s.base + "/revoke",
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":            []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": append(access.AllScopes(), "offline_access"),
		"token_endpoint_auth_methods_supported": methods, "revocation_endpoint_auth_methods_supported": methods,
		"client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true,
	}
}

// Bind returns the route of MCP with what clients that sign in need there: pages of any origin may call it,
// and a client of the newest revision whose permission has no word for a tool is told to ask for that word.
func (s *Server) Bind(r web.Route) web.Route {
	serve := r.Serve
	r.AnyOrigin = true
	r.Serve = func(w http.ResponseWriter, q *http.Request, c web.Caller) {
		if missing := s.missing(q, c); missing != nil {
			body, done := c.ReadBody(w, q)
			if body == nil {
				return
			}
			defer done()
			why := s.lacks(q, c, body.Bytes())
			if why == nil { // an owner has allowed it by now
				q.Body = io.NopCloser(body)
				serve(w, q, c)
				return
			}
			words := strings.Join(missing, " ")
			w.Header().Set("WWW-Authenticate", s.SignIn().Challenge("insufficient_scope", words))
			web.RefuseRPC(w, http.StatusForbidden,
				"an owner has not allowed this: sign in again, and ask for "+words+": "+why.Error())
			return
		}
		serve(w, q, c)
	}
	return r
}

// missing returns the scopes to ask for where a call needs one that the client's permission does not have;
// nil where the call may go on. Stops and releases always go on. The headers are compared with the message later.
func (s *Server) missing(r *http.Request, c web.Caller) []string {
	tool := r.Header.Get("Mcp-Name")
	if c.Who.Kind != principal.Token || r.Header.Get("Mcp-Method") != "tools/call" ||
		rpc.HasHandshake(r.Header.Get("Mcp-Protocol-Version")) || tool == "emergency_stop" || tool == "release_output" ||
		!strings.HasPrefix(web.Bearer(r), access.SignInPrefix) {
		return nil
	}
	scope := access.ScopeOf(tool)
	has := s.Access.Scopes(c.Who)
	if scope == "" || slices.Contains(has, scope) {
		return nil
	}
	return slices.DeleteFunc(access.AllScopes(), func(word string) bool { return word != scope && !slices.Contains(has, word) })
}

// lacks returns why a client may not make the call in a body, of which the owner is told.
func (s *Server) lacks(r *http.Request, c web.Caller, body []byte) error {
	var message struct {
		Params struct {
			Args rpc.Raw `json:"arguments"`
		} `json:"params"`
	}
	if text, err := rpc.ParseJSON(body); err == nil {
		_ = text.Decode(&message) // without arguments the owner is told less
	}
	return s.Lacks(c.Who, r.Header.Get("Mcp-Name"), message.Params.Args)
}

// network returns the network that a request came from.
func network(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddrPort(r.RemoteAddr) // that of no network where it cannot be parsed
	return quota.Prefix(at.Addr())
}

// failure is an error of OAuth.
type failure struct {
	status int
	Code   string `json:"error"`
	Why    string `json:"error_description"`
}

func (f *failure) Error() string { return f.Why }

// refuse answers in the form of OAuth.
func refuse(w http.ResponseWriter, status int, why string) {
	code := "invalid_request"
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		code = "temporarily_unavailable"
	}
	answer(w, status, failure{Code: code, Why: why})
}

// log tells the owner that a step of a sign-in was refused, and why. Strangers cannot fill the log by it, and one of
// them does not keep the lines of others out.
func (s *Server) log(r *http.Request, code, why string) {
	s.refused(r, why)
	if s.loggedOf.Allow(network(r)) && s.logged.Allow("all") {
		slog.Warn("sign-in refused", "step", r.Pattern, "from", network(r), "error", code, "why", why)
	}
}

// fail logs and answers a refusal.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, f *failure) {
	s.log(r, f.Code, f.Why)
	if f.status == http.StatusServiceUnavailable || f.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	answer(w, f.status, f)
}

func answer(w http.ResponseWriter, status int, v any) {
	text, _ := json.Marshal(v, json.Deterministic(true)) // it has a form in JSON
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text)
}

// slow refuses a network that asks too often.
func (s *Server) slow(r *http.Request) *failure {
	if s.rate.Allow(network(r)) {
		return nil
	}
	return &failure{http.StatusTooManyRequests, "temporarily_unavailable", "too many requests: wait some seconds"}
}
