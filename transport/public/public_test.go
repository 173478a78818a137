package public

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const zone = "sites.example.org"

// world is a relay that callers reach at an address, and a site that is connected to it.
type world struct {
	t       *testing.T
	relay   *p2p.Host
	site    *p2p.Host
	names   *Relay
	at      string
	allowed atomic.Bool
	cname   atomic.Pointer[string]       // of every own name
	silent  atomic.Bool                  // the DNS
	address atomic.Pointer[[]netip.Addr] // of every name
	dialed  atomic.Pointer[string]       // by the relay, last
	heard   chan Answer
	cert    tls.Certificate
	inside  tap // what the site has of its callers
	froms   chan net.Addr
}

func newHost(t *testing.T, listen ...string) *p2p.Host {
	t.Helper()
	return newHostOf(t, p2p.Options{Listen: listen})
}

func newRelayHost(t *testing.T, listen string) *p2p.Host {
	t.Helper()
	return newHostOf(t, p2p.Options{Listen: []string{listen}, Relay: &p2p.Relay{}})
}

func newHostOf(t *testing.T, o p2p.Options) *p2p.Host {
	t.Helper()
	o.Key = identity.New()
	h, err := p2p.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func newWorld(t *testing.T, by, own string) *world {
	t.Helper()
	w := &world{t: t, heard: make(chan Answer, 100), froms: make(chan net.Addr, 1000)}
	w.allowed.Store(true)
	relay := newRelayHost(t, by)
	w.relay, w.site = relay, newHost(t)
	w.names = NewRelay(relay, RelayOptions{Zone: zone, Allow: func(identity.ID) bool { return w.allowed.Load() },
		Resolve: func(context.Context, string) (string, error) {
			if w.silent.Load() {
				return "", &net.DNSError{Err: "server misbehaving", IsTemporary: true}
			}
			if c := w.cname.Load(); c != nil {
				return *c + ".", nil
			}
			return "", &net.DNSError{Err: "no such host", IsNotFound: true}
		}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.at = ln.Addr().String()
	w.names.looks.lookup = func(context.Context, string) ([]netip.Addr, error) { return *w.address.Load(), nil }
	w.names.looks.dial = func(_ context.Context, network, address string) (net.Conn, error) {
		w.dialed.Store(&address)
		return net.Dial(network, w.at)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	all.Go(func() { _ = w.names.Serve(ctx, ln) })
	w.serve(&all)
	if err := w.site.Connect(t.Context(), peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}); err != nil {
		t.Fatal(err)
	}
	asker := &Asker{Host: w.site, Relays: []peer.ID{relay.ID()}, Own: own, Heard: func(_ peer.ID, a Answer, err error) {
		if err == nil {
			w.heard <- a
		}
	}}
	all.Go(func() { asker.Run(ctx) })
	return w
}

// serve answers each caller with what it sent.
func (w *world) serve(all *sync.WaitGroup) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"*." + zone}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	ln := Listen(w.site, []peer.ID{w.relay.ID()})
	w.t.Cleanup(func() { ln.Close() })
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			w.froms <- c.RemoteAddr()
			all.Go(func() {
				defer c.Close()
				s := tls.Server(tapped{c, &w.inside}, &tls.Config{Certificates: []tls.Certificate{w.cert}})
				_, _ = io.Copy(s, s)
				_ = s.CloseWrite()
			})
		}
	})
}

// name waits until the relay gives the site its name.
func (w *world) name() string {
	w.t.Helper()
	select {
	case a := <-w.heard:
		if a.Name != Label(w.site.ID())+"."+zone {
			w.t.Fatalf("the relay gives %+v", a)
		}
		return a.Name
	case <-time.After(20 * time.Second):
		w.t.Fatal("the relay does not answer")
		return ""
	}
}

// call connects as a caller.
func (w *world) call(name string) (*tls.Conn, error) {
	raw, err := net.Dial("tcp", w.at)
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { raw.Close() })
	c := tls.Client(raw, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	return c, c.Handshake()
}

// TestPassed: a caller's bytes come to the site and back, by both carriers, with the caller's address. What passes
// the relay is exactly the TLS records of both ends, and no word of what they say.
func TestPassed(t *testing.T) {
	for _, by := range []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"} {
		t.Run(by[15:18], func(t *testing.T) {
			w := newWorld(t, by, "")
			name := w.name()
			raw, err := net.Dial("tcp", w.at)
			if err != nil {
				t.Fatal(err)
			}
			outside := new(tap)
			c := tls.Client(tapped{raw, outside}, &tls.Config{ServerName: name, InsecureSkipVerify: true})
			defer c.Close()
			text := bytes.Repeat([]byte("what nobody between may read "), 20_000)
			go func() { _, _ = c.Write(text); _ = c.CloseWrite() }()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes came back: %v", len(got), err)
			}
			if !bytes.Equal(outside.sent.Bytes(), w.inside.got.Bytes()) || !bytes.Equal(outside.got.Bytes(), w.inside.sent.Bytes()) {
				t.Errorf("the site got %d of %d bytes, and the caller %d of %d, or others", w.inside.got.Len(), outside.sent.Len(), outside.got.Len(), w.inside.sent.Len())
			}
			for way, b := range map[string][]byte{"to": outside.sent.Bytes(), "from": outside.got.Bytes()} {
				if bytes.Contains(b, []byte("nobody between")) {
					t.Errorf("what goes %s the site is readable", way)
				}
				if left := records(b); left != 0 {
					t.Errorf("what goes %s the site ends with %d bytes that are of no TLS record", way, left)
				}
			}
			if from := <-w.froms; from.String() != raw.LocalAddr().String() {
				t.Errorf("the caller is said to be at %v, not %v", from, raw.LocalAddr())
			}
		})
	}
}

// records returns how many bytes are left behind the TLS records at the beginning.
func records(b []byte) (left int) {
	for len(b) >= 5 && len(b) >= 5+int(b[3])<<8+int(b[4]) {
		b = b[5+int(b[3])<<8+int(b[4]):]
	}
	return len(b)
}

// tap keeps what one connection sends and gets.
type tap struct {
	mu        sync.Mutex
	sent, got bytes.Buffer
}

type tapped struct {
	net.Conn
	tap *tap
}

func (c tapped) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.sent.Write(b[:n])
	return n, err
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.got.Write(b[:n])
	return n, err
}

// TestRefusedCallers: nobody reaches a site by another name, without one, or once the relay's owner has crossed it
// out; and no peer but a relay of the site passes a caller on.
func TestRefusedCallers(t *testing.T) {
	w := newWorld(t, "/ip4/127.0.0.1/tcp/0", "")
	name := w.name()
	for _, other := range []string{"", "other." + zone, zone, "x." + name, "example.org"} {
		if _, err := w.call(other); err == nil {
			t.Errorf("%q is answered", other)
		}
	}
	open, err := w.call(name)
	if err != nil {
		t.Error(err)
	}
	stranger := newHost(t, "/ip4/127.0.0.1/tcp/0")
	if err := w.site.Connect(t.Context(), peer.AddrInfo{ID: stranger.ID(), Addrs: stranger.Addrs()}); err != nil {
		t.Fatal(err)
	}
	s, err := stranger.NewStream(network.WithNoDial(t.Context(), "test"), w.site.ID(), tlsProtocol)
	if err == nil {
		_, err = s.Write(appendHeader(nil, netip.MustParseAddrPort("192.0.2.1:1")))
		if err == nil {
			s.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = s.Read(make([]byte, 1))
		}
	}
	if t := net.Error(nil); err == nil || errors.As(err, &t) && t.Timeout() {
		w.t.Error("a stranger's stream is accepted: ", err)
	}
	w.allowed.Store(false)
	if _, err := w.call(name); err == nil {
		t.Error("a site that was crossed out is reached")
	}
	_, err = open.Write([]byte("more"))
	if err == nil {
		_, err = open.Read(make([]byte, 1))
	}
	if timeout := net.Error(nil); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("a connection stays open when a site is crossed out: %v", err)
	}
	w.allowed.Store(true)
	w.site.Network().ClosePeer(w.relay.ID())
	for end := time.Now().Add(10 * time.Second); ; { // the relay notices
		if _, known := w.names.names.site(name); !known {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a site that left has its name")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOwnName: a name of the owner's is served while it is a CNAME of the site's, and none of the zone is taken.
func TestOwnName(t *testing.T) {
	const own = "board.example.com"
	w := newWorld(t, "/ip4/127.0.0.1/tcp/0", own)
	if a := <-w.heard; a.Own || a.Why == "" || a.Name == "" {
		t.Errorf("without a CNAME: %+v", a)
	}
	if _, err := w.call(own); err == nil {
		t.Error("it is served without a CNAME")
	}
	name := Label(w.site.ID()) + "." + zone
	w.cname.Store(&name)
	for a := range w.heard { // it asks again
		if a.Own {
			break
		}
	}
	for _, n := range []string{own, "BOARD.example.com", name} {
		if _, err := w.call(n); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	for _, bad := range []string{zone, "x." + zone, Label(w.relay.ID()) + "." + zone, "localhost", "-a.example.org", "a b.example.org", "192.0.2.1"} {
		if a := w.names.names.give(w.site.ID(), bad); a.Own || a.Why == "" {
			t.Errorf("%q is served: %+v", bad, a)
		}
	}
}

// TestSilentDNS: while the relay's DNS does not answer, a site keeps an own name that it has, and gets none. It loses
// one that the DNS does not know any more.
func TestSilentDNS(t *testing.T) {
	const own = "board.example.com"
	w := newWorld(t, "/ip4/127.0.0.1/tcp/0", "")
	name, site := w.name(), w.site.ID()
	give := func(want bool) {
		t.Helper()
		a := w.names.names.give(site, own)
		if is, ok := w.names.names.site(own); a.Own != want || ok != want || ok && is != site {
			t.Errorf("%+v, served: %v; want %v", a, ok, want)
		}
	}
	w.silent.Store(true)
	give(false)
	w.silent.Store(false)
	w.cname.Store(&name)
	give(true)
	w.silent.Store(true)
	give(true)
	w.silent.Store(false)
	w.cname.Store(nil)
	give(false)
}

// TestHostileRelay: a site takes no name of a relay but its own, nor an answer without an end.
func TestHostileRelay(t *testing.T) {
	site, relay := newHost(t), newHost(t, "/ip4/127.0.0.1/tcp/0")
	if err := site.Connect(t.Context(), peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}); err != nil {
		t.Fatal(err)
	}
	for said, good := range map[string]bool{
		`{"name":"` + Label(site.ID()) + `.example.org"}`: true,
		`{"why":"no"}`:                true,
		`{"name":"bank.example.org"}`: false,
		`{"name":"` + Label(site.ID()) + `bank.example.org"}`:     false,
		`{"name":"` + Label(site.ID()) + `.example.org/x"}`:       false,
		`{"name":"` + Label(site.ID()) + `.` + zone + `","own":1`: false,
		`{"why":"` + strings.Repeat("x", 1<<20) + `"}`:            false,
		``: false,
	} {
		relay.SetStreamHandler(nameProtocol, func(s network.Stream) { _, _ = s.Write([]byte(said)); s.Close() })
		if a, err := ask(t.Context(), site, relay.ID(), ""); (err == nil) != good {
			t.Errorf("%.80s: %+v %v", said, a, err)
		}
	}
}

// TestHangingRelay: a relay that answers nothing does not keep the site from its stop.
func TestHangingRelay(t *testing.T) {
	site, relay := newHost(t), newHost(t, "/ip4/127.0.0.1/tcp/0")
	if err := site.Connect(t.Context(), peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	relay.SetStreamHandler(nameProtocol, func(s network.Stream) {
		_, _ = io.ReadAll(s)
		stop()
		<-t.Context().Done()
		s.Reset()
	})
	begun := time.Now()
	asker := &Asker{Host: site, Relays: []peer.ID{relay.ID()}, Heard: func(peer.ID, Answer, error) {}}
	asker.Run(ctx)
	if d := time.Since(begun); d > askTimeout/2 {
		t.Errorf("stopped after %v", d)
	}
}

// TestPieces: a ClientHello comes in any pieces, and is passed on as it came.
func TestPieces(t *testing.T) {
	var whole bytes.Buffer
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(far, &tls.Config{ServerName: "Board.Example.org", NextProtos: []string{"acme-tls/1"}}).Handshake()
	}()
	h, err := peek(near)
	if err != nil || h.name != "board.example.org" || !h.acme {
		t.Fatalf("%+v %v", h, err)
	}
	near.Close()
	whole.Write(h.bytes)
	near, far = net.Pipe()
	go func() {
		for piece := range slices.Chunk(whole.Bytes(), 7) {
			_, _ = far.Write(piece)
		}
	}()
	again, err := peek(near)
	if err != nil || !bytes.Equal(again.bytes, whole.Bytes()) {
		t.Errorf("%v, %d of %d bytes", err, len(again.bytes), whole.Len())
	}
}

// FuzzHeader: a header is read as it was written, and anything else fails or is an address.
func FuzzHeader(f *testing.F) {
	f.Add(appendHeader(nil, netip.MustParseAddrPort("192.0.2.1:443")))
	f.Add(appendHeader(nil, netip.MustParseAddrPort("[2001:db8::1]:443")))
	f.Add([]byte{255, 1})
	for _, text := range []string{"[fe80::1%\n\x1b]:443", "[::ffff:192.0.2.1]:443"} {
		f.Add(append([]byte{byte(len(text))}, text...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		at, err := readHeader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if at.Addr().Zone() != "" || at.Addr().Is4In6() {
			t.Errorf("%q is an address", at)
		}
		if again, err := readHeader(bytes.NewReader(appendHeader(nil, at))); err != nil || again != at {
			t.Errorf("%v is read as %v: %v", at, again, err)
		}
	})
}
