package http

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
	maxConns      = 256
	maxRequests   = 128      // answered at a time; half of them is as many as all streams that there can be
	maxUrgent     = 8        // urgent ones besides
	maxStrangers  = 16       // and of strangers, of whom some wait for the answer to a wrong proof
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
	// Admit refuses evidence that proves nothing, before anything is read.
	Admit func(rpc.Evidence) error
	// Legacy serves the revisions of MCP that open with a handshake.
	Legacy func(http.ResponseWriter, *http.Request, rpc.Evidence)
	// Urgent is the Mcp-Name of calls that places are kept for; "" for none.
	Urgent string
	// Metrics serves /metrics.
	Metrics func(http.ResponseWriter, *http.Request, rpc.Evidence)
}

// Handler serves a site.
func Handler(o Options) http.Handler {
	s := &server{
		Options: o, places: make(chan struct{}, maxRequests), kept: make(chan struct{}, maxUrgent),
		strangers: make(chan struct{}, maxStrangers),
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
	crowd := newCrowd(maxConns)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout, // streams move it on with every write
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         crowd.changed,
		ConnContext:       crowd.greet,
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
	places    chan struct{} // one per request
	kept      chan struct{} // and some more for urgent ones
	strangers chan struct{} // of who proved a key of which the site knows nothing
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
// where nothing will do. Who proved a key is let in as a stranger, to say what for: it
// may be to claim the site.
func (s *server) admitted(w http.ResponseWriter, r *http.Request) (ev rpc.Evidence, stranger, ok bool) {
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			ev.Bearer = token
		}
	}
	if ev.Peer = proved(r.TLS); r.TLS == nil {
		ev.Local = rpc.LocalLoopback
	}
	err := s.Admit(ev)
	if err != nil && (ev.Peer == "" || ev.Bearer != "") {
		w.Header().Set("WWW-Authenticate", s.challenge(ev))
		refuse(w, http.StatusUnauthorized, err.Error())
		return ev, false, false
	}
	return ev, err != nil, true
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
	ev, stranger, ok := s.admitted(w, r)
	if !ok {
		return
	}
	alone := modern(r.Header)
	if r.Method != http.MethodPost && (alone || r.Header.Get("Mcp-Session-Id") == "") {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "messages are sent by POST")
		return
	}
	place := s.place
	if stranger {
		place = s.turn
	}
	taken := place(w, r)
	if taken == nil {
		return
	}
	defer func() { <-taken }()
	seated(r.Context())
	codec := codecOf(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodPost && codec == nil:
		refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json or application/cbor")
	case codec == rpc.CBOR || alone:
		s.serve(w, r, codec, ev)
	default:
		s.legacy(w, r, ev)
	}
}

// place takes one for a request, of those that are kept where it is urgent and the
// others are taken. Receiving from it gives it back; nil means that there is none, and
// that this was said.
func (s *server) place(w http.ResponseWriter, r *http.Request) chan struct{} {
	select {
	case s.places <- struct{}{}:
		return s.places
	default:
	}
	if s.Urgent != "" && r.Header.Get(nameHeader) == s.Urgent {
		select {
		case s.kept <- struct{}{}:
			return s.kept
		default:
		}
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, "too many requests at a time: try again in a second")
	return nil
}

// turn is place for a stranger, who waits for one of the few. Whatever a stranger does
// slowly holds up nobody: all is said before the wait, in a connection that may have to
// go, and that ends with the answer, so that no buffer is full of what was not read.
func (s *server) turn(w http.ResponseWriter, r *http.Request) chan struct{} {
	w.Header().Set("Connection", "close")
	var body bytes.Buffer
	if status, why := readBody(w, r, http.NewResponseController(w), &body, maxStrange); status != 0 {
		refuse(w, status, why)
		return nil
	}
	r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
	select {
	case s.strangers <- struct{}{}:
		return s.strangers
	case <-r.Context().Done():
		return nil
	}
}

// legacy hands a request over once its body is here, bounded in size and time:
// what follows may be a stream, which knows no deadlines.
func (s *server) legacy(w http.ResponseWriter, r *http.Request, ev rpc.Evidence) {
	rc := http.NewResponseController(w)
	var body bytes.Buffer
	if status, why := readBody(w, r, rc, &body, rpc.MaxMessage); status != 0 {
		refuse(w, status, why)
		return
	}
	rc.SetWriteDeadline(time.Time{})
	r.Body = io.NopCloser(&body)
	s.Legacy(w, r, ev)
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
