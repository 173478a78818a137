package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents/principal"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const (
	testHost  = "127.0.0.1:8473"
	testToken = "the-token-of-the-tests"
)

// noted are the methods' parameters that say how to answer.
type noted struct {
	Notes int `json:"notes"` // notifications before the result
	After int `json:"after"` // seconds before the result
}

// methods for the tests: echo answers with its params, notes with notifications first, slow after a
// time, wait not before its caller has gone. The end of a wait, and a note that could not be sent,
// are reported to ended.
func methods(ended chan<- error) map[string]rpc.Method {
	return map[string]rpc.Method{
		"echo": func(_ context.Context, c *rpc.Call) (any, error) { return c.Params, nil },
		"malformed": func(context.Context, *rpc.Call) (any, error) {
			return nil, &rpc.Error{Code: -32020, Message: "malformed", Malformed: true}
		},
		"refused": func(context.Context, *rpc.Call) (any, error) { return nil, rpc.Errorf(409, "not now") },
		"headers": func(_ context.Context, c *rpc.Call) (any, error) { return c.Header.Values("Mcp-Name"), nil },
		"notes": func(ctx context.Context, c *rpc.Call) (any, error) {
			var p noted
			if err := c.Params.Decode(&p); err != nil {
				return nil, err
			}
			for i := range p.Notes {
				if err := c.Notify("note", map[string]int{"n": i}); err != nil {
					return nil, err
				}
			}
			select {
			case <-time.After(time.Duration(p.After) * time.Second):
			case <-ctx.Done():
			}
			return map[string]string{"done": "yes"}, nil
		},
		"wait": func(ctx context.Context, c *rpc.Call) (any, error) {
			c.Notify("waiting", nil)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
		"flood": func(ctx context.Context, c *rpc.Call) (any, error) {
			for {
				if err := c.Notify("flood", strings.Repeat("x", 1<<10)); err != nil {
					ended <- err
					return nil, err
				}
			}
		},
	}
}

// callers are known by tokens alone.
type callers func(bearer string) (principal.Principal, error)

func (c callers) Bearer(token string, _ bool) (principal.Principal, error) { return c(token) }
func (c callers) Key(string) (principal.Principal, error)                  { return c("") }

// options are a site's, with one token and a legacy side that tells what it got.
func options(ended chan<- error) Options {
	o := Options{
		Hosts: []string{testHost, "localhost:8473", "greenhouse.local:8473"},
		Callers: callers(func(bearer string) (principal.Principal, error) {
			switch {
			case bearer == testToken, strings.HasPrefix(bearer, "also-"):
				return principal.Principal{ID: bearer, Owner: bearer == "also-owner", Account: bearer}, nil
			case bearer == "":
				return principal.Principal{}, errors.New("no token")
			}
			return principal.Principal{}, errors.New("a wrong token")
		}),
	}
	legacy := func(w http.ResponseWriter, r *http.Request, from rpc.Sender) {
		b, err := io.ReadAll(r.Body)
		if err != nil || from.Who.ID != testToken {
			w.WriteHeader(http.StatusTeapot)
		}
		io.WriteString(w, "legacy "+r.Method+" "+string(b))
	}
	say := func(text string) func(http.ResponseWriter, *http.Request, Caller) {
		return func(w http.ResponseWriter, _ *http.Request, c Caller) { io.WriteString(w, text+c.Who.Account) }
	}
	o.Routes = append(PublicRoutes(), MCP(rpc.NewDispatcher(methods(ended)), legacy),
		Route{Pattern: "GET /metrics", Admission: Principals, Serve: say("the metrics for ")}, Route{Pattern: "GET /owners", Admission: Owners, Serve: say("the owner's for ")})
	return o
}

// pipes is a network of the test's own: it works under synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// caller is the far end of one connection.
type caller struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (p *pipes) dial(t *testing.T) *caller {
	near, far := net.Pipe()
	p.conns <- near
	return &caller{t, far, bufio.NewReader(far)}
}

// post writes a request with its body; more are header lines.
func (c *caller) post(body string, more ...string) {
	c.t.Helper()
	var b bytes.Buffer
	b.WriteString("POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nAuthorization: Bearer " + testToken +
		"\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n")
	for _, l := range more {
		b.WriteString(l + "\r\n")
	}
	b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	c.say(b.String())
}

func (c *caller) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads the head of one answer.
func (c *caller) answer() *http.Response {
	c.t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// body reads one whole answer.
func (c *caller) body() (int, string) {
	c.t.Helper()
	res := c.answer()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// over fails unless the connection is closed next, at the given age of the test.
func (c *caller) over(begun time.Time, at time.Duration) {
	c.t.Helper()
	if b, err := io.ReadAll(c.in); len(b) > 0 || (err != nil && !errors.Is(err, io.ErrClosedPipe)) {
		c.t.Errorf("it goes on with %.80q, %v", b, err)
	}
	if got := time.Since(begun); got != at {
		c.t.Errorf("the connection was closed after %v, want %v", got, at)
	}
}

// serve serves on pipes; the test ends it with stop.
func serve(t *testing.T, o Options) (net *pipes, stop func()) {
	t.Helper()
	return serveAs(t, Handler(o))
}

func serveAs(t *testing.T, h http.Handler) (net *pipes, stop func()) {
	t.Helper()
	p := newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, p, h) }()
	return p, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}
