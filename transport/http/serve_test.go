package http

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
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
				if b, err := io.ReadAll(c.in); err != nil || time.Since(begun) != headerTimeout || strings.Contains(string(b), " 200 ") {
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

// keyed has who brings no token come with a key that they proved.
func keyed(h http.Handler) http.Handler {
	public := identity.New().Private().Public()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{PublicKey: public}}}
		}
		h.ServeHTTP(w, r)
	})
}

// TestStrangers: who has a key that the site does not know keeps nobody out, be it with
// half bodies or with what takes long, and has a turn like others.
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

// TestUrgent: an urgent call gets through while slow bodies hold every place, and
// half requests every other connection.
func TestUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		head := "POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nContent-Length: 100\r\n"
		for i := range 2 * maxConns {
			c := net.dial(t)
			go io.Copy(io.Discard, c)
			if i < maxRequests {
				c.say(head + "Authorization: Bearer " + testToken + "\r\n\r\n")
			} else {
				c.say(head)
			}
			synctest.Wait()
		}
		c := net.dial(t)
		c.post(echoing)
		if status, _ := c.body(); status != 503 {
			t.Errorf("there is a place for an ordinary call: %d", status)
		}
		c.Close()
		for range 2 {
			c = net.dial(t)
			c.post(echoing, "Mcp-Name: stop")
			if status, body := c.body(); status != 200 {
				t.Errorf("%d %s", status, body)
			}
			c.Close()
		}
		stop()
	})
}

// TestCrowd: a thousand connections that say nothing are held in number, and keep
// neither a caller out who is there already nor one who comes after them.
func TestCrowd(t *testing.T) {
	const idle = 1000
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
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "+ln.Addr().String()+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); string(b) != "ok\n" || err != nil {
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
	if n := closed.Load(); n != idle+2-maxConns {
		t.Errorf("%d connections were let go, want %d", n, idle+2-maxConns)
	}
	for _, conn := range conns {
		conn.Close() // or the end would wait five seconds for what they may still say
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhoHasToGo: first the longest of those that never said anything, then the
// longest of those between two requests, then of those whose request has no place,
// and never one that is being answered.
func TestWhoHasToGo(t *testing.T) {
	const most = 3
	type step struct {
		conn  int
		state http.ConnState
	}
	const (
		fresh, active, idle, closed = http.StateNew, http.StateActive, http.StateIdle, http.StateClosed
		seat                        = http.ConnState(-1) // becomes active and gets a place
	)
	for _, tt := range []struct {
		name  string
		steps []step
		gone  []int
	}{
		{"room for all", []step{{0, fresh}, {1, fresh}, {2, fresh}}, nil},
		{"the longest silent", []step{{0, fresh}, {1, fresh}, {2, fresh}, {3, fresh}}, []int{0}},
		{"a silent one before an idle one", []step{{0, fresh}, {0, active}, {0, idle}, {1, fresh}, {2, fresh}, {3, fresh}}, []int{1}},
		{"the longest idle", []step{{0, active}, {1, active}, {2, active}, {1, idle}, {0, idle}, {3, active}}, []int{1}},
		{"the newcomer where all have places", []step{{0, seat}, {1, seat}, {2, seat}, {3, fresh}}, []int{3}},
		{"nobody where all have places", []step{{0, seat}, {1, seat}, {2, seat}, {3, active}}, nil},
		{"the longest busy without a place", []step{{0, seat}, {1, active}, {2, active}, {3, fresh}}, []int{1}},
		{"an idle one before a busy one", []step{{0, active}, {1, seat}, {1, idle}, {2, active}, {3, fresh}}, []int{1}},
		{"a place lasts as long as its request", []step{{0, seat}, {0, idle}, {0, active}, {1, seat}, {2, seat}, {3, fresh}}, []int{0}},
		{"those that left make room", []step{{0, fresh}, {1, fresh}, {2, fresh}, {0, closed}, {3, fresh}}, nil},
		{"one that was sent away is forgotten", []step{{0, fresh}, {1, fresh}, {2, fresh}, {3, fresh}, {0, closed}, {1, closed}, {4, fresh}}, []int{0}},
		{"hijacked ones do not count", []step{{0, active}, {0, http.StateHijacked}, {1, fresh}, {2, fresh}, {3, fresh}}, nil},
	} {
		c := newCrowd(most)
		conns := make([]*closable, 5)
		for i := range conns {
			conns[i] = new(closable)
		}
		for _, s := range tt.steps {
			if s.state != seat {
				c.changed(conns[s.conn], s.state)
				continue
			}
			c.changed(conns[s.conn], active)
			seated(c.greet(t.Context(), conns[s.conn]))
		}
		for i, conn := range conns {
			want := false
			for _, g := range tt.gone {
				want = want || g == i
			}
			if conn.closed != want {
				t.Errorf("%s: connection %d was sent away: %v, want %v", tt.name, i, conn.closed, want)
			}
		}
	}
}

type closable struct {
	net.Conn
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }
