//lint:file-ignore SA1019 older revisions have what the newest deprecates

package legacy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func asWire(err error) (*jsonrpc.Error, bool) {
	var e *jsonrpc.Error
	ok := errors.As(err, &e)
	return e, ok
}

func connect(t *testing.T, url, who string, silent bool, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c, err := overHTTP(t, url, who, silent, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A session belongs to the principal who opened it, whoever else knows its id.
func TestSessionIsBoundToPrincipal(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	mine := connect(t, url, "agent", true, nil)
	theirs := connect(t, url, "", true, nil)
	if got := textOf(t, call(t, mine, "whoami", nil).Content[0]); got != `{"id":"local-agent"}` {
		t.Error(got)
	}
	if got := textOf(t, call(t, theirs, "whoami", nil).Content[0]); got != `{"id":"token"}` {
		t.Error(got)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		r, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(sessionHeader, mine.ID())
		res, err := as("").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s with another's session: %s", method, res.Status)
		}
	}
	call(t, mine, "whoami", nil)
	if err := mine.Close(); err != nil { // by DELETE
		t.Error(err)
	}
	eventually(t, "the session that was deleted is closed", func() bool { return s.Sessions() == 1 })
}

func TestNobodyHasNoSession(t *testing.T) {
	s, _ := newServer(t, newFake())
	if _, err := overHTTP(t, listen(t, s), "a stranger", true, nil); err == nil {
		t.Error("a stranger was let in")
	}
}

func TestSubscriptions(t *testing.T) {
	s, hub := newServer(t, newFake())
	url := listen(t, s)
	updates := func(c chan string) *sdk.ClientOptions {
		return &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c <- r.Params.URI }}
	}
	one, two := make(chan string, 9), make(chan string, 9)
	c1, c2 := connect(t, url, "agent", false, updates(one)), connect(t, url, "agent", false, updates(two))
	const uri = "fake:///text"
	for range 2 { // twice is once
		if err := c1.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c2.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	if err := c1.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "fake:///none"}); !hasCode(err, sdk.CodeResourceNotFound) {
		t.Errorf("what there is not: %v", err)
	}
	hub.Announce(agents.Change{URI: uri})
	if <-one != uri || <-two != uri {
		t.Error("another resource was updated")
	}
	if err := c1.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	hub.Announce(agents.Change{URI: uri})
	<-two
	if len(one) != 0 {
		t.Error("told after it unsubscribed")
	}
	c2.Close()
	eventually(t, "the watch ends with the last session", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sessions) == 1 && len(only(s.hosts).watches) == 0
	})
}

func only(hosts map[agents.Principal]*host) *host {
	for _, h := range hosts {
		return h
	}
	return nil
}

// most is how many sessions a caller on this machine can have.
const most = 16

// A principal with as many sessions as it may have loses its own longest idle one for a
// new one, and nobody else's.
func TestSessionsAreBounded(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	other := connect(t, url, "agent", true, nil)
	first := connect(t, url, "", true, nil)
	for range 2 * most {
		connect(t, url, "", true, nil)
	}
	if n := s.Sessions(); n != most+1 {
		t.Errorf("%d sessions", n)
	}
	if _, err := first.ListTools(t.Context(), nil); err == nil {
		t.Error("the longest idle session is still there")
	}
	if _, err := other.ListTools(t.Context(), nil); err != nil {
		t.Errorf("another principal's session: %v", err)
	}
}

// Two who open sessions without an end, as many keys of two grants, end their own idle
// ones, and nobody else's.
func TestSessionsOfOthersStay(t *testing.T) {
	s, _ := newServerWith(t, newFake(), &leave{})
	url := listen(t, s)
	idle := connect(t, url, "victim.0", true, nil)
	for i := range 3 * most {
		connect(t, url, fmt.Sprint("one.", i%8), true, nil)
		connect(t, url, fmt.Sprint("two.", i%8), true, nil)
	}
	if _, err := idle.ListTools(t.Context(), nil); err != nil {
		t.Errorf("another principal's idle session has ended: %v", err)
	}
	connect(t, url, "late.0", true, nil)
	connect(t, url, "agent", true, nil)
	eventually(t, "the sessions are bounded", func() bool { return s.Sessions() <= 2*most+3 })
}

func TestSessionsInUseStay(t *testing.T) {
	s, _ := newServer(t, newFake())
	url := listen(t, s)
	for range most {
		connect(t, url, "", false, nil)
	}
	eventually(t, "all listen", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return longestIdle(slices.Collect(maps.Values(s.sessions))) == nil
	})
	if _, err := overHTTP(t, url, "", true, nil); !hasCode(err, codeBusy) {
		t.Errorf("one too many: %v", err)
	}
	connect(t, url, "agent", true, nil) // who has places of its own
	if n := s.Sessions(); n != most+1 {
		t.Errorf("%d sessions", n)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := connect(t, listen(t, s), "agent", true, nil)
	s.mu.Lock()
	for _, x := range s.sessions {
		x.idle.Reset(0) // as if idleAfter had passed
	}
	s.mu.Unlock()
	eventually(t, "the session ends", func() bool { return s.Sessions() == 0 })
	if _, err := c.ListTools(t.Context(), nil); err == nil {
		t.Error("the session is still served")
	}
}

// Ending a session ends what it has running.
func TestEndEndsRequests(t *testing.T) {
	f := newFake()
	s, _ := newServer(t, f)
	c := connect(t, listen(t, s), "agent", true, nil)
	go c.CallTool(t.Context(), &sdk.CallToolParams{Name: "forever"})
	<-f.running
	s.Close()
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// So does the end of a stream, from either side.
func TestStreamEndEndsRequests(t *testing.T) {
	for _, end := range []string{"the client's", "ours"} {
		f := newFake()
		s, _ := newServer(t, f)
		here, there := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		served := make(chan error, 1)
		go func() { served <- s.ServeStream(ctx, there, node.LocalAgent) }()
		c, err := newClient(nil).Connect(t.Context(), &sdk.IOTransport{Reader: here, Writer: here}, legacyOnly)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go c.CallTool(t.Context(), &sdk.CallToolParams{Name: "forever"})
		<-f.running
		if end == "ours" {
			cancel()
		} else {
			here.Close()
		}
		if err := <-f.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", end, err)
		}
		if err := <-served; err != nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}

// On HTTP the questions go out on the call's own stream and the answers come in as
// requests of their own.
func TestRoundsOverHTTP(t *testing.T) {
	s, _ := newServer(t, newFake())
	c := connect(t, listen(t, s), "agent", false, answering())
	if got := textOf(t, call(t, c, "ask", nil).Content[0]); got != `{"greeting":"hello Ada","roots":0}` {
		t.Error(got)
	}
}

// leave is an Access that permits tokens everything, until they are revoked. The text before a dot
// is the root.
type leave struct{ revoked atomic.Bool }

func (l *leave) Peer(string) (agents.Principal, error) {
	return agents.Principal{}, device.Faultf(device.Denied, "unknown")
}

func (l *leave) Bearer(token string) (agents.Principal, error) {
	return agents.Principal{ID: "token:" + token}, nil
}

func (l *leave) Owns(string) bool { return true }

func (*leave) PassedOn(string, string) bool { return false }
func (l *leave) Root(p agents.Principal) string {
	root, _, _ := strings.Cut(p.ID, ".")
	return root
}

func (l *leave) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if !l.CanSee(p, ask) {
		return agents.Limits{}, device.Faultf(device.Denied, "no leave")
	}
	return agents.Limits{}, nil
}

func (l *leave) MayRenew(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	return l.May(p, ask)
}

func (l *leave) Take(p agents.Principal, ask agents.Ask, _ bool) (agents.Limits, error) {
	return l.May(p, ask)
}
func (l *leave) CanSee(agents.Principal, agents.Ask) bool { return !l.revoked.Load() }
func (l *leave) MayHold(string, string) bool              { return !l.revoked.Load() }
func (*leave) NameOf(string) string                       { return "" }
func (*leave) AgentName(string) string                    { return "" }
func (*leave) Widened(agents.Principal, agents.Ask) (token, may string, ok bool) {
	return "", "", false
}
func (l *leave) Version(agents.Principal) uint64 {
	if l.revoked.Load() {
		return 0
	}
	return 1
}

// TestSessionEndsWithItsLeave: the next session under its name has another host.
func TestSessionEndsWithItsLeave(t *testing.T) {
	l := &leave{}
	s, _ := newServerWith(t, newFake(), l)
	who, err := s.node.Bearer("other", false)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStream(t.Context(), there, who) }()
	c, err := newClient(nil).Connect(t.Context(), &sdk.IOTransport{Reader: here, Writer: here}, legacyOnly)
	if err != nil {
		t.Fatal(err)
	}
	call(t, c, "whoami", nil)
	s.node.Recheck()
	call(t, c, "whoami", nil)
	l.revoked.Store(true)
	s.node.Recheck()
	if err := <-served; err != nil {
		t.Error(err)
	}
	eventually(t, "its host is closed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.hosts) == 0
	})
	c.Close()
}
