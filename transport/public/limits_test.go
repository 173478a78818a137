package public

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestRelayHasHalf: one relay of a site holds half of its connections at most, and the callers of another come through.
func TestRelayHasHalf(t *testing.T) {
	site := newHost(t)
	hostile, good := newRelayHost(t, "/ip4/127.0.0.1/tcp/0"), newRelayHost(t, "/ip4/127.0.0.1/tcp/0")
	for _, h := range []*p2p.Host{hostile, good} {
		if err := site.Connect(t.Context(), peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
	ln := Listen(site, []peer.ID{hostile.ID(), good.ID()})
	t.Cleanup(func() { ln.Close() })
	passOn := func(by *p2p.Host, from string) (network.Stream, error) {
		s, err := by.NewStream(network.WithNoDial(t.Context(), "test"), site.ID(), tlsProtocol)
		if err == nil {
			t.Cleanup(func() { s.Reset() })
			_, err = s.Write(appendHeader(nil, netip.MustParseAddrPort(from)))
		}
		return s, err
	}
	const over = 8
	ended := make(chan error, maxOfRelay+over)
	for range maxOfRelay + over {
		s, err := passOn(hostile, "192.0.2.1:1")
		if err != nil {
			ended <- err
			continue
		}
		go func() { _, err := s.Read(make([]byte, 1)); ended <- err }()
	}
	for range over {
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("one relay holds more than half")
		}
	}
	if _, err := passOn(good, "192.0.2.2:2"); err != nil {
		t.Fatal(err)
	}
	for range maxOfRelay + 1 {
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if c.RemoteAddr().String() == "192.0.2.2:2" {
			return
		}
	}
	t.Error("the other relay's caller does not come through")
}

// TestSiteLimits: the 33rd caller of a site is refused, one network has half of that, and an authority comes through
// all the same.
func TestSiteLimits(t *testing.T) {
	r := newRelay(RelayOptions{})
	site := peer.ID("site")
	from := func(n byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 32) }
	admitted := func(n byte, h hello) (count int) {
		for range 100 {
			if _, ok := r.admit(h, from(n), site); ok {
				count++
			}
		}
		return count
	}
	if n := admitted(1, hello{}); n != DefaultConnections/2 {
		t.Errorf("one network has %d connections", n)
	}
	if n := admitted(2, hello{}) + admitted(3, hello{}); n != DefaultConnections/2 {
		t.Errorf("the others have %d connections", n)
	}
	for n := range byte(3) {
		if _, ok := r.admit(hello{acme: true}, from(10+n), site); !ok {
			t.Error("an authority is refused")
		}
	}
	if n := admitted(1, hello{acme: true}); n > maxACME-3 {
		t.Errorf("one network has %d connections of authorities", n)
	}
	if _, ok := r.admit(hello{}, from(1), peer.ID("other")); !ok {
		t.Error("another site has no callers")
	}
}

// TestDay: a site has so many bytes a day, and one network of callers half of them. An authority comes through without.
func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = DefaultDailyBytes >> 20
		r := newRelay(RelayOptions{})
		use := func(from byte, site peer.ID) (n int) {
			pay := r.budget(hello{}, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, from}), 32), site)
			for pay(1 << 20) {
				n++
			}
			return n
		}
		if n := use(1, "site"); n != most/2 {
			t.Errorf("%d MiB of one network at once", n)
		}
		if n := use(2, "site") + use(3, "site"); n != most/2 {
			t.Errorf("%d MiB of others at once", n)
		}
		if n := use(1, "other"); n != most/2 {
			t.Errorf("another site has %d MiB", n)
		}
		authority := r.budget(hello{acme: true}, netip.Prefix{}, "site")
		if !authority(10<<10) || authority(acmeBytes) {
			t.Error("an authority has no bytes, or has them without an end")
		}
		time.Sleep(24 * time.Hour)
		if n := use(1, "site") + use(2, "site"); n < most-2 || n > most {
			t.Errorf("%d MiB after a day", n)
		}
	})
}

// from is a connection in memory of a caller at an address.
type from struct {
	net.Conn
	at string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.at))
}

// TestHelloIsCharged: what a caller sends before it is admitted is of the site's day, too. No more callers reach the
// site's connection than that is enough for.
func TestHelloIsCharged(t *testing.T) {
	site, err := peer.Decode(identity.New().ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	opened, sent := 0, 0
	r := newRelay(RelayOptions{DailyBytes: 16 << 10})
	r.names = &names{sites: map[string]peer.ID{"board.example.org": site}}
	r.open = func(context.Context, peer.ID) (stream, error) { opened++; return nil, errors.New("it is not there") }
	for n := range 40 {
		near, far := net.Pipe()
		said := new(tap)
		var calling sync.WaitGroup
		calling.Go(func() {
			_ = tls.Client(tapped{far, said}, &tls.Config{ServerName: "board.example.org", InsecureSkipVerify: true}).Handshake()
		})
		r.pass(t.Context(), from{near, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 1).String()})
		calling.Wait()
		sent = max(sent, said.sent.Len())
	}
	if most := 16 << 10 / sent; opened == 0 || opened > most {
		t.Errorf("%d callers of %d bytes are passed on", opened, sent)
	}
}

// end is one end of a stream in memory.
type end struct {
	net.Conn
	reset atomic.Bool
}

func (e *end) CloseWrite() error { return e.Conn.Close() }
func (e *end) Reset() error      { e.reset.Store(true); return e.Conn.Close() }

// halfClosed is a connection in memory that can be closed for writing, where nothing comes of it.
type halfClosed struct{ net.Conn }

func (halfClosed) CloseWrite() error { return nil }
func (h halfClosed) Reset() error    { return h.Close() }

// TestSilentSite: a site that looks at its name and says nothing after its ClientHello has its place at the relay until
// the end of the look.
func TestSilentSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		inner, outer := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, outer) }()
		go func() { _ = tls.Client(far, &tls.Config{ServerName: "board.example.org"}).Handshake() }()
		begun := time.Now()
		until := begun.Add(outsideTimeout)
		near.SetDeadline(until)
		inner.SetDeadline(until)
		if err := passOutside(halfClosed{near}, inner, "board.example.org", until); err != nil || time.Since(begun) != outsideTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// TestSlow: a caller has five seconds for its ClientHello, however it sends it, and two minutes without a byte end a
// connection.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		begun := time.Now()
		go func() { _, _ = far.Write([]byte{22, 3, 1, 2, 0}) }()
		if _, err := peek(near); err == nil || time.Since(begun) != helloTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		near.Close()
		near, far = net.Pipe()
		go func() { _, _ = far.Write(bytes.Repeat([]byte{22, 3, 1, 63, 0}, maxHello)) }()
		if _, err := peek(near); err == nil {
			t.Error("it reads without an end")
		}
		near.Close()
		far.Close()

		near, far = net.Pipe()
		inner, outer := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, outer) }()
		go func() { // a byte a minute is not idle
			for range 5 {
				time.Sleep(time.Minute)
				_, _ = far.Write([]byte{1})
			}
		}()
		begun = time.Now()
		r, s := newRelay(RelayOptions{}), &end{Conn: inner}
		r.copyBoth(near, s, []byte("first"), "site", r.budget(hello{}, netip.Prefix{}, "site"))
		if got := time.Since(begun); got != 5*time.Minute+idleTimeout || !s.reset.Load() {
			t.Errorf("it ended after %v", got)
		}

		near, far = net.Pipe() // a caller that does not end when the site has
		defer far.Close()
		inner, outer = net.Pipe()
		go func() { _, _ = io.ReadFull(outer, make([]byte, 5)); outer.Close() }()
		begun = time.Now()
		r.copyBoth(halfClosed{near}, &end{Conn: inner}, []byte("first"), "site", r.budget(hello{}, netip.Prefix{}, "site"))
		if got := time.Since(begun); got != lingerTimeout {
			t.Errorf("a site that has ended has its caller for %v", got)
		}
	})
}
