package legacy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxMessage bounds an inbound message, as the newer revision does.
	maxMessage = 256 << 10
	// writeTimeout bounds the time in which a client reads what was sent.
	writeTimeout = 30 * time.Second

	sessionHeader = "Mcp-Session-Id"
)

// Server serves sessions. It is safe for concurrent use.
type Server struct {
	// Library is the catalog, unless a test sets another before the first call.
	Library tools.Library
	// Events answers the methods of events, but for streams; nil for none. It is set before the first call.
	Events *events.Server

	node         *node.Node
	catalog      *tools.Catalog
	self         *sdk.Implementation
	instructions string

	mu       sync.Mutex
	hosts    map[agents.Principal]*host
	sessions map[*sdk.ServerSession]*session
	closed   bool
}

// New makes a server that offers a catalog to callers that the node authenticates, and calls itself
// name and version.
func New(n *node.Node, c *tools.Catalog, name, version, instructions string) *Server {
	return &Server{
		Library: c, node: n, catalog: c, instructions: instructions,
		self:  &sdk.Implementation{Name: name, Version: version},
		hosts: make(map[agents.Principal]*host), sessions: make(map[*sdk.ServerSession]*session),
	}
}

// ServeHTTP serves one request of Streamable HTTP with sessions. The carrier has
// checked Host, Origin, the size and the sender.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, from rpc.Sender) {
	who, err := from.Principal()
	who.Account = "" // a session lasts while its principal's account changes
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	w = &deadlineWriter{w, http.NewResponseController(w)}
	if !passes(w, r) {
		return
	}
	id := r.Header.Get(sessionHeader)
	if id == "" {
		h := s.enter(who)
		defer s.leave(h)
		h.http.ServeHTTP(w, r)
		return
	}
	x := s.resume(who, id)
	if x == nil {
		http.Error(w, "there is no such session: begin a new one with initialize", http.StatusNotFound)
		return
	}
	defer s.endRequest(x)
	if r.Method == http.MethodDelete {
		x.end()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	x.host.http.ServeHTTP(w, r)
}

// ServeWith serves MCP of every revision over a byte stream: newest answers, and a client
// of an older revision is handed over to s. It blocks until the stream ends.
func (s *Server) ServeWith(ctx context.Context, rw io.ReadWriteCloser, who agents.Principal,
	newest *rpc.Dispatcher) error {
	handover := func(ctx context.Context, rw io.ReadWriteCloser) error { return s.ServeStream(ctx, rw, who) }
	return (&rpc.Stream{Dispatcher: newest, Sender: rpc.From(who), Handover: handover}).Serve(ctx, rw)
}

// ServeStream serves one session over newline-delimited JSON, beginning with its
// initialize. It blocks until the peer closes its side or ctx ends, neither of
// which is an error, and closes rw.
func (s *Server) ServeStream(ctx context.Context, rw io.ReadWriteCloser, who agents.Principal) error {
	defer rw.Close()
	h := s.enter(who)
	defer s.leave(h)
	ss, err := h.sdk.Connect(ctx, stream{newInspected(rw)}, nil)
	if err != nil {
		return err
	}
	// Closing the stream, and not the session, ends the requests that run, too.
	stop := context.AfterFunc(ctx, func() { rw.Close() })
	defer stop()
	err = ss.Wait()
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Close ends every session and admits no more. It does not wait for them.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.sessions {
		go x.end()
	}
}

// Sessions returns how many sessions there are.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// enter returns the host of a principal, and makes it if there is no session yet. A leave follows
// every enter.
func (s *Server) enter(who agents.Principal) *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[who]
	if h == nil {
		h = newHost(s, who)
		s.hosts[who] = h
	}
	h.users++
	return h
}

func (s *Server) leave(h *host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left(h)
}

// left is leave with the lock held.
func (s *Server) left(h *host) {
	if h.users--; h.users == 0 {
		h.stop()
		s.close(h)
	}
}

// close removes a host, so that the principal's next session gets a new one. The lock is held.
func (s *Server) close(h *host) {
	if s.hosts[h.who] == h {
		delete(s.hosts, h.who)
	}
}

// expel ends every session of a host, whose offer is not its principal's any more.
func (s *Server) expel(h *host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(h)
	for _, x := range s.sessionsOf(h) {
		go x.end()
	}
}

// deadlineWriter gives every write a deadline of its own: a stream may last, but a client
// that stops reading must not keep its place.
type deadlineWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (p *deadlineWriter) Write(b []byte) (int, error) {
	p.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(b)
}

// Unwrap lets a ResponseController flush.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
