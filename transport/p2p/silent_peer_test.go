package p2p

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// cable passes on what one host sends another by UDP, unless it drops that, and until it is cut.
func cable(t *testing.T, to *Host, drops *atomic.Bool) (at ma.Multiaddr, cut func()) {
	t.Helper()
	far, err := manet.ToNetAddr(to.Addrs()[0].Decapsulate(ma.StringCast("/quic-v1")))
	if err != nil {
		t.Fatal(err)
	}
	in, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.DialUDP("udp4", nil, far.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	var near atomic.Pointer[net.UDPAddr]
	var passing sync.WaitGroup
	pass := func(from *net.UDPConn, on func([]byte)) {
		b := make([]byte, 2048)
		for {
			n, who, err := from.ReadFromUDP(b)
			if err != nil {
				return
			}
			if from == in {
				near.Store(who)
			}
			if !drops.Load() {
				on(b[:n])
			}
		}
	}
	passing.Go(func() { pass(in, func(b []byte) { out.Write(b) }) })
	passing.Go(func() { pass(out, func(b []byte) { in.WriteToUDP(b, near.Load()) }) })
	cut = sync.OnceFunc(func() { in.Close(); out.Close(); passing.Wait() })
	t.Cleanup(cut)
	return ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", in.LocalAddr().(*net.UDPAddr).Port)), cut
}

// TestKilledClient: a client that was killed repeatedly, which QUIC does not report, reaches a site
// and a relay with the same key. The dead connections are closed, and the live one stays.
func TestKilledClient(t *testing.T) {
	for name, o := range map[string]Options{
		"a site":  {Account: func(identity.ID) string { return "ann" }},
		"a relay": {Relay: &Relay{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			site, key := newHost(t, o, overQUIC), identity.New()
			join(t, site, newHost(t, Options{Key: key}))
			for i := range 10 {
				at, cut := cable(t, site, new(atomic.Bool))
				h := newHost(t, Options{Key: key})
				if err := h.Connect(ctx, peer.AddrInfo{ID: site.ID(), Addrs: []ma.Multiaddr{at}}); err != nil {
					t.Errorf("after %d deaths: %v", i, err)
				}
				s, err := h.openStream(ctx, site.ID(), ping.ID)
				if err == nil {
					s.SetDeadline(time.Now().Add(2 * time.Second))
					s.Write(make([]byte, ping.PingSize))
					_, err = s.Read(make([]byte, 1))
				}
				if err != nil {
					t.Errorf("after %d deaths: %v", i, err)
				}
				cut()
				h.Close()
			}
			who, _ := PeerID(key.ID())
			conns := func() int { return len(site.Network().ConnsToPeer(who)) }
			for end := time.Now().Add(patience); conns() > probeFrom && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			if n := conns(); n == 0 || n > probeFrom {
				t.Errorf("%d connections are left", n)
			}
		})
	}
}

// TestGarbage: a stream that brings no messages is told so and ended; the connection, and
// other streams, go on.
func TestGarbage(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		site, other := newHost(t, Options{}, listen), newHost(t, Options{})
		serve(t, site, nil)
		s, err := open(ctx, other, site, codec, "\xff\x00")
		if err != nil {
			t.Fatal(err)
		}
		var saying sync.WaitGroup
		saying.Go(func() { io.WriteString(s, strings.Repeat("garbage", 40<<10)) }) // it may be ended before
		told, _ := io.ReadAll(s)
		s.Reset()
		saying.Wait()
		if !bytes.Contains(told, []byte(map[rpc.Codec]string{rpc.CBOR: "CBOR", rpc.JSON: "has at most"}[codec])) {
			t.Errorf("it was told %.100q", told)
		}
		c := other.Caller(site.id(t), site.at, codec)
		res, err := c.Call(ctx, ask(1, "echo", "x"), nil)
		if got := text(t, res, err); got != `"x"` {
			t.Error(got)
		}
	})
}

// TestUrgent: a caller whose stream is full still gets through, on a second one.
func TestUrgent(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		site, other := newHost(t, Options{}, listen), newHost(t, Options{})
		running, release := make(chan bool), make(chan bool)
		serveMethods(t, site, nil, map[string]rpc.Method{
			"hold": func(context.Context, *rpc.Call) (any, error) { running <- true; <-release; return "held", nil },
			"stop": func(context.Context, *rpc.Call) (any, error) { return "stopped", nil },
		})
		c := other.Caller(site.id(t), site.at, codec)
		var held sync.WaitGroup
		for i := range uint64(rpc.MaxInFlight) {
			held.Go(func() {
				res, err := c.Call(ctx, ask(i, "hold", nil), nil)
				if b, _ := res.JSONText(); err != nil || string(b) != `"held"` {
					t.Errorf("%s, %v", b, err)
				}
			})
		}
		for range rpc.MaxInFlight {
			<-running
		}
		for i := range uint64(3) {
			res, err := c.Call(ctx, ask(1000+i, "stop", nil), nil)
			if got := text(t, res, err); got != `"stopped"` {
				t.Error(got)
			}
		}
		close(release)
		held.Wait()
	})
}

// TestPeerDoesNotRead: a peer that asks and does not read is taken in no more of than it reads,
// and keeps nobody up.
func TestPeerDoesNotRead(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		site, other := newHost(t, Options{}, listen), newHost(t, Options{})
		var asked atomic.Int64
		serveMethods(t, site, nil, map[string]rpc.Method{
			"much": func(context.Context, *rpc.Call) (any, error) { asked.Add(1); return strings.Repeat("x", 100<<10), nil },
			"echo": func(_ context.Context, c *rpc.Call) (any, error) { return c.Params, nil },
		})
		s, err := open(ctx, other, site, codec, "")
		if err != nil {
			t.Fatal(err)
		}
		var one bytes.Buffer
		if err := rpc.EncodeRequest(codec, &one, ask(1, "much", nil)); err != nil {
			t.Fatal(err)
		}
		if codec == rpc.JSON {
			one.WriteByte('\n')
		}
		for range 50_000 { // until no more is taken
			s.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := s.Write(one.Bytes()); err != nil {
				break
			}
			if asked.Load() > 1000 {
				break
			}
		}
		if n := asked.Load(); n > 200 {
			t.Errorf("%d answers of 100 KB were made for who does not read", n)
		}
		c := other.Caller(site.id(t), site.at, codec)
		res, err := c.Call(ctx, ask(1, "echo", "x"), nil)
		if got := text(t, res, err); got != `"x"` {
			t.Error(got)
		}
	})
}
