package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// configs returns the TLS configurations of a site and of a client that asks for HTTP/2.
func configs(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key := identity.New()
	server, err := ServerTLS(key, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if client, err = ClientTLS(identity.New(), key.ID()); err != nil {
		t.Fatal(err)
	}
	client.NextProtos = []string{"h2"}
	client.Certificates = nil // the token proves the caller
	return server, client
}

// serveTLS serves o over TLS on loopback until the test ends.
func serveTLS(t *testing.T, o Options) (address string, client *tls.Config) {
	t.Helper()
	server, client := configs(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, tls.NewListener(ln, server), Handler(o)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String(), client
}

// TestHTTP2 has a client hold a hundred streams on one connection, on which a call is answered
// meanwhile. A client that knows only HTTP/1.1 is served beside it.
func TestHTTP2(t *testing.T) {
	const streams = 100
	ended := make(chan error, streams)
	at, secured := serveTLS(t, options(ended))
	var dialled atomic.Int32
	transport := &http.Transport{TLSClientConfig: secured, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	post := func(body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, "https://"+at+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = request("").Header
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	answered := func() {
		t.Helper()
		res := post(echoing)
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || !strings.Contains(string(b), `"result"`) {
			t.Errorf("%s %d %s, %v", res.Proto, res.StatusCode, b, err)
		}
	}
	answered()
	var open []*http.Response
	for range streams {
		open = append(open, post(`{"jsonrpc":"2.0","id":1,"method":"wait"}`))
	}
	answered()
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	for _, res := range open {
		res.Body.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	answered()

	secured = secured.Clone()
	secured.NextProtos = nil
	old := &http.Transport{TLSClientConfig: secured}
	defer old.CloseIdleConnections()
	res, err := (&http.Client{Transport: old}).Get("https://" + at + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 1 || res.StatusCode != http.StatusOK {
		t.Errorf("%s %d", res.Proto, res.StatusCode)
	}
}

// TestStreamsCount: a stream counts as a connection does, so that no account and no address has more
// places by HTTP/2. Who has few keeps them.
func TestStreamsCount(t *testing.T) {
	const usual, most = 8, 20
	l := newConnLimiter(usual, most)
	conn := func(from, account string) (*closable, context.Context) {
		c := &closable{from: &net.TCPAddr{IP: net.ParseIP(from), Port: 1}}
		l.changed(c, http.StateNew)
		ctx := l.context(t.Context(), c)
		if account != "" {
			prove(ctx, account)
		}
		return c, ctx
	}
	var ends []func()
	hold := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		held := make(chan bool)
		r := request("").WithContext(ctx)
		r.ProtoMajor = 2
		leave := make(chan struct{})
		go func() {
			l.multiplexed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				complete(r.Context())
				held <- true
				<-leave
			})).ServeHTTP(w, r)
			close(held)
		}()
		if <-held {
			ends = append(ends, func() { close(leave); <-held })
			return http.StatusOK
		}
		return w.Code
	}
	ann, annCtx := conn("192.0.2.1", "ann")
	if s := hold(annCtx); s != http.StatusOK {
		t.Fatal(s)
	}
	// Eve's first connection has all that there is; neither it nor a second has more.
	eve, eveCtx := conn("192.0.2.2", "eve")
	for i := range usual {
		if s := hold(eveCtx); (s == http.StatusOK) != (i < usual-1) {
			t.Errorf("stream %d: %d", i, s)
		}
	}
	second, secondCtx := conn("192.0.2.2", "eve")
	hold(secondCtx)
	if s := hold(secondCtx); s != http.StatusServiceUnavailable {
		t.Errorf("by a second connection: %d", s)
	}
	if s := hold(annCtx); s != http.StatusOK || ann.closed {
		t.Errorf("ann: %d, closed %v", s, ann.closed)
	}
	// Above the second limit who has the most is closed, whatever runs there.
	for i := range most - usual {
		_, ctx := conn("192.0.2.3", "bob "+strconv.Itoa(i))
		hold(ctx)
	}
	if !eve.closed && !second.closed || ann.closed || l.count > most {
		t.Errorf("closed: eve %v and %v, ann %v; %d", eve.closed, second.closed, ann.closed, l.count)
	}
	for _, end := range ends {
		end()
	}
	for c := range l.conns {
		l.changed(c, http.StateClosed)
	}
	if l.count != 0 || len(l.conns) != 0 {
		t.Errorf("%d are left of %d", l.count, len(l.conns))
	}
}

// frames is a client of HTTP/2 that writes single frames.
type frames struct {
	*testing.T
	*http2.Framer
	conn  net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

// dialFrames connects and sends the preface and settings.
func dialFrames(t *testing.T, conn net.Conn, client *tls.Config) *frames {
	t.Helper()
	secured := tls.Client(conn, client)
	if err := secured.Handshake(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { secured.Close() })
	if p := secured.ConnectionState().NegotiatedProtocol; p != "h2" {
		t.Fatalf("the site speaks %q", p)
	}
	f := &frames{T: t, Framer: http2.NewFramer(secured, secured), conn: secured}
	f.enc = hpack.NewEncoder(&f.block)
	if _, err := io.WriteString(secured, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// head encodes the header of a request with a body.
func (f *frames) head(more ...string) []byte {
	f.block.Reset()
	all := append([]string{":method", "POST", ":scheme", "https", ":path", "/mcp", ":authority", testHost,
		"authorization", "Bearer " + testToken, "content-type", "application/json", "mcp-protocol-version", "2026-07-28"}, more...)
	for i := 0; i < len(all); i += 2 {
		f.enc.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
	}
	return f.block.Bytes()
}

// ending reads until the connection ends, and returns the code of the last GOAWAY.
func (f *frames) ending() (code http2.ErrCode, said bool) {
	for {
		frame, err := f.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			f.Error("the connection does not end")
		}
		if err != nil {
			return code, said
		}
		if g, ok := frame.(*http2.GoAwayFrame); ok {
			code, said = g.ErrCode, true
		}
	}
}

// TestHTTP2Floods: a connection that is used to make the site work or remember without bound is
// ended: by requests that are reset at once, by headers without an end, by frames of no use.
func TestHTTP2Floods(t *testing.T) {
	for name, tt := range map[string]struct {
		send func(f *frames, i int) error
		code http2.ErrCode
	}{
		"rapid reset": {func(f *frames, i int) error { // CVE-2023-44487
			id := uint32(2*i + 1)
			body := `{"jsonrpc":"2.0","id":1,"method":"stuck"}`
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.head(), EndHeaders: true})
			f.WriteData(id, true, []byte(body))
			return f.WriteRSTStream(id, http2.ErrCodeCancel)
		}, http2.ErrCodeEnhanceYourCalm},
		"CONTINUATION": {func(f *frames, i int) error { // CVE-2023-45288
			if i == 0 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head(), EndStream: true})
			}
			f.block.Reset()
			f.enc.WriteField(hpack.HeaderField{Name: "x-" + strconv.Itoa(i), Value: strings.Repeat("x", 4<<10)})
			return f.WriteContinuation(1, false, f.block.Bytes())
		}, http2.ErrCodeProtocol},
		"long frames": {func(f *frames, i int) error {
			return f.WriteRawFrame(http2.FrameType(0xf0), 0, 0, make([]byte, 17<<10))
		}, http2.ErrCodeFrameSize},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(make(chan error, 1))
			release := make(chan struct{})
			var running atomic.Int32
			for i := range o.Routes {
				if o.Routes[i].Pattern == "/mcp" {
					serve := o.Routes[i].Serve
					o.Routes[i].Serve = func(w http.ResponseWriter, r *http.Request, c Caller) {
						if name == "rapid reset" { // what was asked does not end with its caller
							running.Add(1)
							<-release
						}
						serve(w, r, c)
					}
				}
			}
			at, client := serveTLS(t, o)
			defer close(release)
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			f := dialFrames(t, conn, client)
			f.AllowIllegalWrites = true
			conn.SetReadDeadline(time.Now().Add(time.Minute))
			go func() {
				for i := range 20_000 {
					if tt.send(f, i) != nil {
						return
					}
				}
			}()
			if code, said := f.ending(); said && code != tt.code {
				t.Errorf("it ends with %v, want %v", code, tt.code)
			}
			if n := running.Load(); n > maxStreams {
				t.Errorf("%d requests ran", n)
			}
		})
	}
}

// TestHTTP2HalfOpen: a connection without a whole request ends when it is idle for too long, and a
// body without an end after readTimeout; another stream of the connection goes on.
func TestHTTP2HalfOpen(t *testing.T) {
	server, client := configs(t)
	own, err := ClientTLS(identity.New(), identity.ID{})
	if err != nil {
		t.Fatal(err)
	}
	server.GetCertificate, server.Certificates = nil, own.Certificates // a pipe has no address
	client.VerifyConnection = nil
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Serve(ctx, tls.NewListener(p, server), Handler(options(make(chan error, 1))))
		}()
		f := dialFrames(t, p.dial(t).Conn, client)
		begun := time.Now()
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("content-length", "100"), EndHeaders: true})
		f.WriteData(1, false, []byte("{"))
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if h, ok := frame.(*http2.HeadersFrame); ok && h.StreamID == 1 {
				break
			}
		}
		if took := time.Since(begun); took != readTimeout {
			t.Errorf("half a body was waited for %v", took)
		}
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: f.head()[:20]})
		if _, said := f.ending(); time.Since(begun) > readTimeout+idleTimeout+time.Second {
			t.Errorf("half a header was waited for until %v, said %v", time.Since(begun), said)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
