package web

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
)

func TestSlowHeaders(t *testing.T) {
	for _, tt := range []struct{ name, sent string }{
		{"nothing", ""},
		{"half a line", "POST /mc"},
		{"half a head", "POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nX: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, stop := serve(t, options(nil))
				begun := time.Now()
				c := net.dial(t)
				c.say(tt.sent)
				if b, err := io.ReadAll(c.in); err != nil || time.Since(begun) != readTimeout || strings.Contains(string(b), " 200 ") {
					t.Errorf("%q, %v after %v", b, err, time.Since(begun))
				}
				stop()
			})
		})
	}
}

func TestIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		begun := time.Now()
		c := net.dial(t)
		for range 3 { // one connection, many requests
			c.post(echoing)
			if status, _ := c.body(); status != 200 {
				t.Error(status)
			}
			time.Sleep(time.Minute)
		}
		c.over(begun, 2*time.Minute+idleTimeout)
		stop()
	})
}

func TestLongHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		c := net.dial(t)
		go io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: "+testHost+"\r\nX: "+strings.Repeat("x", maxHeader+8<<10)+"\r\n\r\n")
		if status, _ := c.body(); status != http.StatusRequestHeaderFieldsTooLarge {
			t.Error(status)
		}
		c.Close()
		stop()
	})
}

// TestShutdown: a running request is finished, an open stream has five seconds.
func TestShutdown(t *testing.T) {
	start := func(t *testing.T, body string) (*caller, func(within time.Duration)) {
		p := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, p, Handler(options(make(chan error, 1)))) }()
		c := p.dial(t)
		c.post(body)
		synctest.Wait()
		begun := time.Now()
		cancel()
		return c, func(within time.Duration) {
			t.Helper()
			if err := <-done; err != nil || time.Since(begun) > within {
				t.Errorf("Serve ended after %v with %v, want %v at most", time.Since(begun), err, within)
			}
		}
	}
	t.Run("a running request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, ends := start(t, `{"jsonrpc":"2.0","id":1,"method":"notes","params":{"after":3}}`)
			if status, body := c.body(); status != 200 || body != itsDone {
				t.Errorf("%d %s", status, body)
			}
			ends(4 * time.Second)
		})
	})
	t.Run("an open stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, ends := start(t, `{"jsonrpc":"2.0","id":1,"method":"wait"}`)
			res := c.answer()
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Error("the stream ended as if it were complete")
			}
			ends(5 * time.Second)
		})
	})
	t.Run("nobody there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, stop := serve(t, options(nil))
			_ = p
			begun := time.Now()
			stop()
			if time.Since(begun) != 0 {
				t.Errorf("it took %v", time.Since(begun))
			}
		})
	})
}

// TestBrokenListener: a listener that fails by itself is an error.
func TestBrokenListener(t *testing.T) {
	p := newPipes()
	p.Close()
	if err := Serve(t.Context(), p, http.NotFoundHandler()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestHalfBodies: connections that are kept busy with bodies that never end, by
// somebody without a token, keep no good caller out.
func TestHalfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		for range maxConns {
			c := net.dial(t)
			c.say("POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Length: 10\r\n\r\n")
			go io.Copy(io.Discard, c)
		}
		synctest.Wait()
		c := net.dial(t)
		c.post(echoing)
		if status, body := c.body(); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		c.Close()
		stop()
	})
}

// keyed gives requests without a token the evidence of a proved key.
func keyed(h http.Handler) http.Handler {
	public := identity.New().Private().Public()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{PublicKey: public}}}
		}
		h.ServeHTTP(w, r)
	})
}

// TestStrangers: callers with keys unknown to the site keep nobody out, by half bodies or by slow
// requests, and are served in turn.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serveAs(t, keyed(Handler(options(nil))))
		strange := func(length int, body string) *caller {
			c := net.dial(t)
			c.say("POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Name: stop\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n" + body)
			synctest.Wait() // until then it has said nothing, and would have to go first
			return c
		}
		known := func() {
			t.Helper()
			c := net.dial(t)
			c.post(echoing)
			if status, body := c.body(); status != 200 {
				t.Errorf("%d %s", status, body)
			}
			c.Close()
		}
		for range maxConns {
			go io.Copy(io.Discard, strange(100, "{"))
		}
		known()
		c := strange(len(echoing), echoing)
		if res := c.answer(); res.StatusCode != 200 || !res.Close {
			t.Errorf("%+v", res)
		}
		c.Close()
		if c = strange(maxStrange+1, ""); c.answer().StatusCode != 413 {
			t.Error("a stranger may say much")
		}
		c.Close()

		const slow = `{"jsonrpc":"2.0","id":1,"method":"notes","params":{"after":3}}`
		for range maxStrangers {
			go io.Copy(io.Discard, strange(len(slow), slow))
		}
		begun := time.Now()
		c = strange(len(echoing), echoing)
		known()
		if took := time.Since(begun); took != 0 {
			t.Errorf("a known caller waited for %v", took)
		}
		if status, body := c.body(); status != 200 || time.Since(begun) != 3*time.Second {
			t.Errorf("%d %s after %v", status, body, time.Since(begun))
		}
		c.Close()
		stop()
	})
}

// TestManyHalfBodies: three callers with a token each hold as many connections as they can, with
// half a message on each, also a message marked as urgent. They keep out neither new connections
// nor existing ones.
func TestManyHalfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		head := "POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nContent-Length: 100\r\nMcp-Name: stop\r\n"
		early := net.dial(t)
		ask := func(c *caller) {
			t.Helper()
			c.post(echoing)
			if status, body := c.body(); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		}
		ask(early)
		for i := range 3 * maxConns {
			c := net.dial(t)
			go io.Copy(io.Discard, c)
			c.say(head)
			if i%4 > 0 {
				c.say("Authorization: Bearer also-" + strconv.Itoa(i%3) + "\r\n\r\n{")
			}
			synctest.Wait()
			if i%50 == 0 {
				late := net.dial(t)
				ask(late)
				ask(early)
				late.Close()
			}
		}
		ask(early)
		early.Close()
		stop()
	})
}

// TestManyConnections: of two thousand silent connections a bounded number is kept. They keep out
// neither existing nor later callers.
func TestManyConnections(t *testing.T) {
	const idle = 2 * maxConns
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := options(nil)
	o.Hosts = []string{ln.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, Handler(o)) }()

	client := func() func() {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		in := bufio.NewReader(conn)
		return func() {
			t.Helper()
			if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: "+ln.Addr().String()+"\r\nAuthorization: Bearer "+testToken+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); string(b) != "the metrics for "+testToken || err != nil {
				t.Fatalf("%q %v", b, err)
			}
		}
	}
	early := client()
	early()

	var closed atomic.Int64
	var conns []net.Conn
	gone := make(chan struct{}, idle)
	for range idle {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		go func() {
			conn.Read(make([]byte, 1)) // until somebody closes it
			closed.Add(1)
			gone <- struct{}{}
		}()
	}
	late := client()
	late()
	early()
	limit := time.After(10 * time.Second)
	for range idle + 2 - maxConns {
		select {
		case <-gone:
		case <-limit:
			t.Fatalf("%d of %d connections were let go, want %d", closed.Load(), idle, idle+2-maxConns)
		}
	}
	late()
	early()
	if n, most := closed.Load(), int64(idle+2-usualConns); n > most { // beyond usualConns, those that had time to ask go
		t.Errorf("%d connections were let go, and at most %d may", n, most)
	}
	for _, conn := range conns {
		conn.Close() // or the end would wait five seconds for what they may still say
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhoHasToGo: a connection is evicted from the half above its share, and there from the group
// with the most. An idle one is evicted before a busy one, and an older before a newer one.
func TestWhoHasToGo(t *testing.T) {
	const most = 6
	type step struct {
		conn int
		does string // comes from an address, proves an account, is idle, complete or closed
	}
	comes := func(conns ...int) (all []step) {
		for _, c := range conns {
			all = append(all, step{c, "from 192.0.2.1"})
		}
		return all
	}
	proves := func(who string, conns ...int) (all []step) {
		for _, c := range conns {
			all = append(all, step{c, "from 192.0.2.1"}, step{c, who})
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		steps []step
		gone  []int
	}{
		{"room for all", comes(0, 1, 2, 3, 4, 5), nil},
		{"the oldest that proved nothing", comes(0, 1, 2, 3, 4, 5, 6, 7), []int{0, 1}},
		{"of the address that has the most", append([]step{{0, "from 192.0.2.9"}}, comes(1, 2, 3, 4, 5, 6)...), []int{1}},
		{"a network of addresses is one", []step{{0, "from 2001:db8::1"}, {1, "from 2001:db8:1::1"}, {2, "from 2001:db8:1:2::1"}, {3, "from 2001:db8:2::1"}, {4, "from 2001:db8:3::1"}, {5, "from 2001:db8:4::1"}, {6, "from 2001:db8:5::1"}}, []int{1}},
		{"of who proved nothing, though an account has more", slices.Concat(proves("ann", 0, 1, 2), comes(3, 4, 5, 6)), []int{3}},
		{"of the account that has the most", slices.Concat(proves("ann", 0), proves("eve", 1, 2, 3, 4), comes(5, 6)), []int{1}},
		{"an idle one first", slices.Concat(proves("eve", 1, 2, 3, 4), []step{{1, "complete"}, {2, "complete"}, {3, "complete"}, {3, "idle"}}, comes(5, 6, 7)), []int{3}},
		{"half a request before one that is answered", slices.Concat(proves("eve", 1, 2, 3, 4), []step{{1, "complete"}, {2, "complete"}, {4, "complete"}}, comes(5, 6, 7)), []int{3}},
		{"one that is answered, where there are no others", slices.Concat(proves("eve", 1, 2, 3, 4), []step{{1, "complete"}, {2, "complete"}, {3, "complete"}, {4, "complete"}}, comes(5, 6, 7)), []int{1}},
		{"a place lasts as long as its request", slices.Concat(proves("eve", 1, 2, 3, 4), []step{{1, "complete"}, {1, "idle"}, {1, "eve"}, {2, "complete"}, {3, "complete"}, {4, "complete"}}, comes(5, 6, 7)), []int{1}},
		{"those that left made room", append(comes(0, 1, 2, 3, 4, 5), step{0, "closed"}, step{6, "from 192.0.2.1"}), nil},
		{"one that was sent away is forgotten", append(comes(0, 1, 2, 3, 4, 5, 6), step{0, "closed"}, step{1, "closed"}, step{7, "from 192.0.2.1"}), []int{0}},
	} {
		l := newConnLimiter(most, most)
		conns := make([]*closable, 8)
		for i := range conns {
			conns[i] = new(closable)
		}
		for _, s := range tt.steps {
			conn := conns[s.conn]
			ctx := l.context(t.Context(), conn)
			from, isNew := strings.CutPrefix(s.does, "from ")
			switch {
			case isNew:
				conn.from = &net.TCPAddr{IP: net.ParseIP(from), Port: 1}
				l.changed(conn, http.StateNew)
			case s.does == "idle":
				l.changed(conn, http.StateIdle)
			case s.does == "closed":
				l.changed(conn, http.StateClosed)
			case s.does == "complete":
				complete(ctx)
			default:
				prove(ctx, s.does)
			}
		}
		var gone []int
		for i, conn := range conns {
			if conn.closed {
				gone = append(gone, i)
			}
		}
		if !slices.Equal(gone, tt.gone) {
			t.Errorf("%s: %v were closed, want %v", tt.name, gone, tt.gone)
		}
	}
}

// TestTimeToSpeak: among many callers that reconnect repeatedly, each has some time to send, unless
// there are too many of them.
func TestTimeToSpeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newConnLimiter(10, 40)
		var conns []*closable
		come := func(n int) (open int) {
			for range n {
				conns = append(conns, new(closable))
				l.changed(conns[len(conns)-1], http.StateNew)
			}
			return len(l.conns)
		}
		if n := come(30); n != 30 {
			t.Errorf("%d of 30 are open", n)
		}
		time.Sleep(spare)
		if n := come(20); n != 30 || conns[30].closed {
			t.Errorf("%d are open, and one that has just come is closed: %v", n, conns[30].closed)
		}
		if n := come(100); n != 40 {
			t.Errorf("%d are open, want 40", n)
		}
	})
}

// TestQuietConnectionStays: if connections of an account with many may not be closed yet, one of
// another account is not closed in their place. Its caller may be about to use it, and a request
// that meets the end of its connection is lost.
func TestQuietConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newConnLimiter(10, 40)
		come := func(who string) *closable {
			conn := new(closable)
			l.changed(conn, http.StateNew)
			prove(l.context(t.Context(), conn), who)
			return conn
		}
		kept := come("ann")
		l.changed(kept, http.StateIdle)
		time.Sleep(2 * spare)
		for range 100 {
			come("eve")
		}
		if kept.closed || len(l.conns) != 40 {
			t.Errorf("ann's is closed: %v; %d are open", kept.closed, len(l.conns))
		}
	})
}

type closable struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }

func (c *closable) RemoteAddr() net.Addr { return cmp.Or[net.Addr](c.from, &net.TCPAddr{}) }
