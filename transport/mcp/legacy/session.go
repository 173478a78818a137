package legacy

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/node"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// idleAfter ends a session on HTTP that nobody listens to and nobody calls.
	idleAfter = 10 * time.Minute
	// codeBusy is the error code of requests beyond the limits.
	codeBusy = 429
)

// session is an open session of one principal.
type session struct {
	host    *host
	place   node.Place // a session costs about 17 KB
	sdk     *sdk.ServerSession
	ctx     context.Context // ends the requests that run
	cancel  context.CancelFunc
	watched map[string]bool // the resources that it is subscribed to

	// Of sessions on HTTP, where a client may go without a word.
	requests int // that run, the listening one included
	idle     *time.Timer
	since    time.Time // when it last fell idle
}

// end ends the session and its requests, and waits for them.
func (x *session) end() {
	x.cancel()
	x.sdk.Close()
}

// admit registers a new session. When its account has too many, the account's longest idle session
// is evicted, never one of another account. If none is idle, the new one is refused.
func (s *Server) admit(h *host, ss *sdk.ServerSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[ss] != nil {
		return nil // a second handshake: the SDK refuses it
	}
	if s.closed {
		return &jsonrpc.Error{Code: codeBusy, Message: "the site is stopping"}
	}
	place, err := s.node.Hold(h.who, node.Sessions)
	for err != nil {
		out := longestIdle(s.sessionsOfAccount(h.who))
		if out == nil {
			return asError(err)
		}
		s.forget(out)
		go out.end()
		place, err = s.node.Hold(h.who, node.Sessions)
	}
	x := &session{host: h, place: place, sdk: ss, watched: make(map[string]bool)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	if ss.ID() != "" {
		x.idle, x.since = time.AfterFunc(idleAfter, x.end), time.Now()
	}
	s.sessions[ss] = x
	h.users++
	go func() {
		ss.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(x)
	}()
	return nil
}

func (s *Server) sessionsOf(h *host) (all []*session) {
	for _, x := range s.sessions {
		if x.host == h {
			all = append(all, x)
		}
	}
	return all
}

func (s *Server) sessionsOfAccount(who agents.Principal) (all []*session) {
	account, _ := s.node.Account(who) // who has a host is known
	for _, x := range s.sessions {
		if its, _ := s.node.Account(x.host.who); its == account {
			all = append(all, x)
		}
	}
	return all
}

func longestIdle(among []*session) (out *session) {
	for _, x := range among {
		if x.idle != nil && x.requests == 0 && (out == nil || x.since.Before(out.since)) {
			out = x
		}
	}
	return out
}

// forget releases the resources of a session. The lock is held.
func (s *Server) forget(x *session) {
	if s.sessions[x.sdk] != x {
		return
	}
	delete(s.sessions, x.sdk)
	x.place.Leave()
	x.cancel()
	if x.idle != nil {
		x.idle.Stop()
	}
	for uri := range x.watched {
		x.host.unwatch(uri)
	}
	s.left(x.host)
}

// resume finds who's session on HTTP and marks it as in use; rest follows. It is nil if this
// principal has none with this ID.
func (s *Server) resume(who agents.Principal, id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.sdk.ID() == id && x.host.who == who {
			x.requests++
			x.idle.Stop()
			return x
		}
	}
	return nil
}

func (s *Server) endRequest(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.requests--; x.requests == 0 && s.sessions[x.sdk] == x {
		x.since = time.Now()
		x.idle.Reset(idleAfter)
	}
}

// during ends a request's context with its session.
func (s *Server) during(ctx context.Context, ss *sdk.ServerSession) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	x := s.sessions[ss]
	s.mu.Unlock()
	if x == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(x.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
