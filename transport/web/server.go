package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentsite/transport/rpc"
)

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	keepAlive     = 30 * time.Second // between comments on a silent stream
	maxHeader     = 16 << 10
	usualConns    = 256
	maxConns      = 1024
	smallBody     = 16 << 10 // a longer one needs one of the places that its account has for those
	maxLarge      = 4
	maxStrangers  = 16       // requests of strangers, of whom some wait for the answer to a wrong proof
	maxStrange    = 16 << 10 // bytes that one of those may say
)

// Options are what a site's handler works with.
type Options struct {
	// Resource is the URL of /mcp for which tokens count.
	Resource string
	// Hosts are the values of the Host header that are served, host:port, besides the
	// address that a connection came to.
	Hosts      []string
	Dispatcher *rpc.Dispatcher
	// Admit names the account of a caller, or refuses evidence that proves nothing, before
	// anything is read.
	Admit func(rpc.Evidence) (account string, err error)
	// Legacy serves the revisions of MCP that open with a handshake.
	Legacy func(http.ResponseWriter, *http.Request, rpc.Evidence)
	// Metrics serves /metrics.
	Metrics func(http.ResponseWriter, *http.Request, rpc.Evidence)
}

// Handler serves a site.
func Handler(o Options) http.Handler {
	s := &server{
		Options: o, strangers: make(chan struct{}, maxStrangers),
		large: perAccount{most: maxLarge, held: make(map[string]int)},
	}
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, r.serve)
	}
	return s.guarded(mux)
}

// route is a pattern as net/http has it, and what it leads to.
type route struct {
	pattern string
	serve   http.HandlerFunc
}

// routes are all that there are.
func (s *server) routes() []route {
	return []route{
		{"/mcp", s.mcp},
		{"GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) }},
		{"GET /metrics", s.metrics},
		{"GET /{$}", help},
		{"GET " + wellKnown + "/mcp", s.describe},
	}
}

// Routes are the patterns of all that a Handler serves: "GET /healthz", or "/mcp" for
// every verb.
func Routes() []string {
	var all []string
	for _, r := range (&server{}).routes() {
		all = append(all, r.pattern)
	}
	return all
}

// Serve serves h on ln until ctx ends, and then gives running requests five
// seconds. Slow and idle clients are bounded in time and in number.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	conns := newConnLimiter(usualConns, maxConns)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout, // streams move it on with every write
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         conns.changed,
		ConnContext:       conns.context,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := srv.Shutdown(ending)
		if err != nil {
			err = srv.Close()
		}
		stopped <- err
	})
	err := srv.Serve(ln)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err // it broke by itself
	}
	return <-stopped
}

type server struct {
	Options
	strangers chan struct{} // a place for each request by a key of which the site knows nothing
	large     perAccount    // requests with a long body
}

// guarded is the order in which a request is looked at: Host, Origin, size; the
// token comes with the paths that need it.
func (s *server) guarded(next http.Handler) http.Handler {
	origins := make([]string, 0, 2*len(s.Hosts))
	for _, h := range s.Hosts {
		origins = append(origins, "http://"+h, "https://"+h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// For refused ones too: net/http reads their bodies to the end, and has no
			// deadline of its own for that. What reads the whole body lifts this.
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		if !slices.Contains(s.Hosts, r.Host) && !reached(r) {
			refuse(w, http.StatusForbidden, "this site is not called "+clip(r.Host)+"; a name of its own goes under http: hosts: in agentsite.yaml")
			return
		}
		if o := r.Header.Values("Origin"); len(o) > 0 && !(len(o) == 1 && (slices.Contains(origins, o[0]) || r.TLS != nil && o[0] == "https://"+r.Host)) {
			refuse(w, http.StatusForbidden, "a page of "+clip(o[0])+" may not call this site")
			return
		}
		w.Header()["X-Content-Type-Options"] = nosniff
		next.ServeHTTP(w, r)
	})
}

// reached reports whether a request names the address that it came to, which no name
// that somebody else owns can stand for.
func reached(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	named, err2 := netip.ParseAddrPort(r.Host)
	return err == nil && err2 == nil && named == netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// admitted takes the token from the header and nowhere else, and answers 401
// where nothing will do. Who proved a key is let in as a stranger, without an account, to say
// what for: it may be to claim the site.
func (s *server) admitted(w http.ResponseWriter, r *http.Request) (ev rpc.Evidence, account string, ok bool) {
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			ev.Bearer = token
		}
	}
	if ev.Peer = proved(r.TLS); r.TLS == nil {
		ev.Local = rpc.LocalLoopback
	}
	account, err := s.Admit(ev)
	switch {
	case err == nil:
		prove(r.Context(), account)
	case ev.Peer == "" || ev.Bearer != "":
		w.Header().Set("WWW-Authenticate", s.challenge(ev))
		refuse(w, http.StatusUnauthorized, err.Error())
		return ev, "", false
	}
	return ev, account, true
}

// wellKnown is where RFC 9728 has a resource described.
const wellKnown = "/.well-known/oauth-protected-resource"

// challenge says how to come back: with a token, and where that is described.
func (s *server) challenge(ev rpc.Evidence) string {
	c := `Bearer realm="agentsite", resource_metadata="` + strings.TrimSuffix(s.Resource, "/mcp") + wellKnown + `/mcp"`
	if ev.Bearer != "" {
		c += `, error="invalid_token"`
	}
	return c
}

// describe tells that tokens come in a header. It names nobody who hands them out: the
// owner does, by other ways.
func (s *server) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"resource":%q,"bearer_methods_supported":["header"],"resource_name":"agentsite"}`+"\n", s.Resource)
}

func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if ev, _, ok := s.admitted(w, r); ok {
		s.Metrics(w, r, ev)
	}
}

func (s *server) mcp(w http.ResponseWriter, r *http.Request) {
	ev, account, ok := s.admitted(w, r)
	if !ok {
		return
	}
	alone := modern(r.Header)
	if r.Method != http.MethodPost && (alone || r.Header.Get("Mcp-Session-Id") == "") {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "messages are sent by POST")
		return
	}
	body, done := s.body(w, r, account)
	if body == nil {
		return
	}
	defer done()
	complete(r.Context())
	codec := codecOf(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodPost && codec == nil:
		refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json or application/cbor")
	case codec == rpc.CBOR || alone:
		s.serve(w, r, codec, ev, body)
	default:
		http.NewResponseController(w).SetWriteDeadline(time.Time{}) // what follows may be a stream
		r.Body = io.NopCloser(body)
		s.Legacy(w, r, ev)
	}
}

// body reads a request's body, nil where it cannot and has said so; otherwise done follows.
// No other account waits for it: a long one takes one of the places that its account has
// for those, and a stranger waits for one of the few that strangers have.
func (s *server) body(w http.ResponseWriter, r *http.Request, account string) (body *bytes.Buffer, done func()) {
	most, leave := int64(rpc.MaxMessage), func() {}
	switch {
	case account == "":
		most = maxStrange
		w.Header().Set("Connection", "close") // so that no buffer is full of what was not read
	case r.ContentLength < 0 || r.ContentLength > smallBody:
		if !s.large.enter(account) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "too many long messages at a time: try again in a second")
			return nil, nil
		}
		leave = func() { s.large.leave(account) }
	}
	body = bodies.Get().(*bytes.Buffer)
	done = func() { recycle(body); leave() }
	if status, why := readBody(w, r, body, most); status != 0 {
		refuse(w, status, why)
		done()
		return nil, nil
	}
	if account == "" {
		select {
		case s.strangers <- struct{}{}:
			leave = func() { <-s.strangers }
		case <-r.Context().Done():
			done()
			return nil, nil
		}
	}
	return body, done
}

// modern tells a request that stands alone from one of a session. A revision that
// knows no sessions passes over the session's header; nothing keeps a client of a
// session from mirroring its method.
func modern(h http.Header) bool {
	if h.Get("Mcp-Protocol-Version") >= rpc.Revision {
		return true
	}
	method := h.Get("Mcp-Method")
	return h.Get("Mcp-Session-Id") == "" && method != "" && method != "initialize"
}

func codecOf(contentType string) rpc.Codec {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case rpc.JSON.ContentType():
		return rpc.JSON
	case rpc.CBOR.ContentType():
		return rpc.CBOR
	}
	return nil
}

// refuse answers what never became a call. The body is a JSON-RPC error without
// an id, as MCP lets it be. Its code is the one that transport/mcp gives a fault
// of the same kind.
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

func clip(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
