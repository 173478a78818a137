package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

var errStranger = errors.New("nobody knows you")

// open opens a stream as a caller does, and says something on it.
func open(ctx context.Context, h, site *Host, codec rpc.Codec, say string) (network.Stream, error) {
	if err := h.Connect(ctx, peer.AddrInfo{ID: site.ID(), Addrs: site.Addrs()}); err != nil {
		return nil, err
	}
	s, err := h.openStream(ctx, site.ID(), protocolOf(codec))
	if err != nil {
		return nil, err
	}
	s.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(s, say)
	return s, err
}

// TestStrangerConnLimit: sixty strangers sit there, and a peer that is known connects and
// calls all the same.
func TestStrangerConnLimit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := identity.New()
	known := func(id identity.ID) bool { return id == key.ID() }
	site := newHost(t, Options{Account: func(id identity.ID) string {
		if known(id) {
			return "owner"
		}
		return ""
	}}, overTCP, overQUIC)
	serve(t, site, func(e rpc.Evidence) error {
		if id, err := identity.Parse(e.Peer); err == nil && known(id) {
			return nil
		}
		return errStranger
	})
	const strangers = 60
	var calls sync.WaitGroup
	for range strangers {
		h := newHost(t, Options{})
		calls.Go(func() {
			for range 5 { // whatever comes of it
				if s, err := open(ctx, h, site, rpc.JSON, `{"jsonrpc":"2.0","id":1,"method":"wait"}`+"\n"); err == nil {
					s.Read(make([]byte, 1))
				}
			}
		})
	}
	owner := newHost(t, Options{Key: key})
	c := owner.Caller(site.id(t), site.at, rpc.CBOR)
	for i := range uint64(20) {
		res, err := c.Call(ctx, ask(i, "echo", "x"), nil)
		if got := text(t, res, err); got != `"x"` {
			t.Error(got)
		}
	}
	served := owner.Network().ConnsToPeer(site.ID()) // two where it was slow, and each transport came through
	calls.Wait()
	res, err := c.Call(ctx, ask(99, "echo", "x"), nil)
	if got := text(t, res, err); got != `"x"` {
		t.Error(got)
	}
	if !slices.ContainsFunc(served, func(c network.Conn) bool { return !c.IsClosed() }) {
		t.Errorf("the owner was thrown out of %v", served)
	}
}

// TestConnLimitByAccount: an account with many keys takes no place from another account, and
// a key whose permission has ended is a stranger's.
func TestConnLimitByAccount(t *testing.T) {
	conns, err := newConnManager(false)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	accounts := make(map[identity.ID]string)
	p := newConnLimiter(func(id identity.ID) string { return accounts[id] }, conns, false)
	come := func(account string) *inbound {
		id := identity.New().ID()
		who, err := PeerID(id)
		if err != nil {
			t.Fatal(err)
		}
		if accounts[id] = account; account == "" {
			delete(accounts, id)
		}
		c := &inbound{who: who, closed: make(chan struct{})}
		if ok, _ := p.InterceptUpgraded(c); !ok {
			t.Fatal("it is refused")
		}
		return c
	}
	var honest []*inbound
	for i := range 4 {
		honest = append(honest, come(string(rune('a'+i))))
	}
	open := func(all []*inbound) (n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range all {
			if p.has(c) {
				n++
			}
		}
		return n
	}
	var hostile []*inbound
	for i := range 4 * maxKnown {
		hostile = append(hostile, come([]string{"eve", "mallory", ""}[i%3]))
	}
	honest = append(honest, come("late"))
	if n := open(honest); n != len(honest) {
		t.Errorf("%d of %d others are still connected", n, len(honest))
	}
	if n := open(hostile); n > maxKnown+maxStrangers {
		t.Errorf("%d of those who come without an end are connected", n)
	}
	clear(accounts)
	come("")
	if n := open(honest) + open(hostile); n > maxKnown+maxStrangers {
		t.Error(n)
	}
	if conns.IsProtected(honest[0].who, "") {
		t.Error("one whose permission has ended is as hard to send away as before")
	}
}

// TestConnLimitInAccount: one whose permission was passed on to it, and who connects without an
// end, takes no place from who passed it on.
func TestConnLimitInAccount(t *testing.T) {
	conns, err := newConnManager(false)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	p := newConnLimiter(func(identity.ID) string { return "ann" }, conns, false)
	peers := make([]peer.ID, 2)
	for i := range peers {
		if peers[i], err = PeerID(identity.New().ID()); err != nil {
			t.Fatal(err)
		}
	}
	come := func(who peer.ID) *inbound {
		c := &inbound{who: who, closed: make(chan struct{})}
		p.InterceptUpgraded(c)
		return c
	}
	ann := come(peers[0])
	for range 4 * maxKnown {
		come(peers[1])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stays := p.has(ann); !stays || len(p.inbound) > maxKnown {
		t.Errorf("ann is among them: %v; there are %d", stays, len(p.inbound))
	}
}

// has reports whether a connection has its place still. It is called with mu held.
func (p *connLimiter) has(c network.Conn) bool {
	return slices.ContainsFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c })
}

// TestStrangerEviction: a stranger who comes over a relay again and again, and one with many
// keys, take the place of none who comes from elsewhere, or over the same relay with
// another key.
func TestStrangerEviction(t *testing.T) {
	conns, err := newConnManager(false)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	p := newConnLimiter(nil, conns, false)
	new := func() peer.ID {
		who, err := PeerID(identity.New().ID())
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	come := func(who peer.ID, at string) *inbound {
		c := &inbound{who: who, at: ma.StringCast(at), closed: make(chan struct{})}
		p.InterceptUpgraded(c)
		return c
	}
	const relay, eve = "/ip4/192.0.2.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit", "/ip4/192.0.2.2/tcp/1"
	honest := []*inbound{come(new(), "/ip4/192.0.2.3/tcp/1"), come(new(), "/ip6/2001:db8::1/tcp/1"), come(new(), relay)}
	one := new()
	for range 4 * maxStrangers {
		come(one, relay)
		come(new(), eve)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range honest {
		if !p.has(c) {
			t.Errorf("stranger %d has lost its place", i)
		}
	}
	if n := len(p.inbound); n > maxStrangers {
		t.Errorf("strangers have %d places", n)
	}
}

// TestRelayStrangers: a relay has so many connections of strangers, and of one network; who
// has a place is spared.
func TestRelayStrangers(t *testing.T) {
	conns, err := newConnManager(true)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	p := newConnLimiter(nil, conns, true)
	come := func(n int, from string) *inbound {
		c := &inbound{who: peer.ID(fmt.Sprint("key", n)), at: ma.StringCast(from + "/tcp/1"), closed: make(chan struct{})}
		p.InterceptUpgraded(c)
		return c
	}
	site := come(0, "/ip4/192.0.2.1")
	conns.TagPeer(site.who, reservationTag, 10)
	for i := range 2 * maxPerPrefix {
		come(1+i, "/ip4/192.0.2.1")
	}
	other := come(1000, "/ip4/192.0.2.2")
	if n := len(p.inbound); n > maxPerPrefix+2 {
		t.Errorf("one network has %d connections", n)
	}
	for i := range 2 * maxRelayStrangers {
		come(2000+i, fmt.Sprintf("/ip4/198.51.100.%d", i%100))
	}
	if n := len(p.inbound); n > maxRelayStrangers+1 || !p.has(site) || !p.has(other) {
		t.Errorf("strangers have %d connections; who has a place is there: %v, who has few: %v", n, p.has(site), p.has(other))
	}
}

// cable passes on what one host sends another by UDP, until it is cut.
func cable(t *testing.T, to *Host) (at ma.Multiaddr, cut func()) {
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
			on(b[:n])
		}
	}
	passing.Go(func() { pass(in, func(b []byte) { out.Write(b) }) })
	passing.Go(func() { pass(out, func(b []byte) { in.WriteToUDP(b, near.Load()) }) })
	cut = sync.OnceFunc(func() { in.Close(); out.Close(); passing.Wait() })
	t.Cleanup(cut)
	return ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", in.LocalAddr().(*net.UDPAddr).Port)), cut
}

// TestKilledClient: a client that was killed again and again, of which nobody hears by QUIC,
// gets through with the same key, to a site and to a relay. The dead connections go, and
// the one that lives stays.
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
				at, cut := cable(t, site)
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

// TestStrangerStreamEviction: as many strangers as there are places for sit there and say
// nothing. Another one, who may have come to claim the site, is heard.
func TestStrangerStreamEviction(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	site := newHost(t, Options{}, overTCP)
	serve(t, site, func(rpc.Evidence) error { return errStranger })
	for range maxStrangersTotal / maxStrangerStreams {
		h := newHost(t, Options{})
		for range maxStrangerStreams {
			s, err := open(ctx, h, site, rpc.JSON, `{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\n")
			if err == nil {
				_, err = s.Read(make([]byte, 1)) // and from then on it sits there
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	other := newHost(t, Options{})
	c := other.Caller(site.id(t), site.at, rpc.CBOR)
	defer c.Close()
	res, err := c.Call(ctx, ask(1, "echo", "x"), nil)
	if err != nil {
		t.Fatal("a stranger is kept out by others:", err)
	}
	if got := text(t, res, err); got != `"x"` {
		t.Error(got)
	}
}

// inbound is a connection that somebody has made.
type inbound struct {
	network.Conn
	who    peer.ID
	at     ma.Multiaddr // nil for nowhere
	closed chan struct{}
}

func (c *inbound) RemotePeer() peer.ID { return c.who }
func (c *inbound) RemoteMultiaddr() ma.Multiaddr {
	if c.at == nil {
		return unlimitedAddr
	}
	return c.at
}
func (c *inbound) NewStream(context.Context) (network.Stream, error) { return silent{}, nil }
func (c *inbound) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: network.DirInbound}}
}
func (c *inbound) IsClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
func (c *inbound) Close() error { close(c.closed); return nil }

// TestStranger is what one may do, and what more once the site knows it.
func TestStranger(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var admitted atomic.Bool
	site, other := newHost(t, Options{}, overTCP), newHost(t, Options{})
	serve(t, site, func(rpc.Evidence) error {
		if admitted.Load() {
			return nil
		}
		return errStranger
	})
	c := other.Caller(site.id(t), site.at, rpc.CBOR)
	defer c.Close()
	wait := func(id uint64) <-chan error {
		waiting, ended := make(chan bool), make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, ask(id, "wait", nil), func(string, rpc.Raw) {
				select {
				case waiting <- true:
				default: // another's
				}
			})
			ended <- err
		}()
		<-waiting
		return ended
	}
	one, two := wait(1), wait(2)
	var busy *rpc.Error
	if _, err := c.Call(ctx, ask(3, "echo", nil), nil); !errors.As(err, &busy) || busy.Code != rpc.CodeBusy {
		t.Errorf("a third call: %v", err)
	}
	s, err := open(ctx, other, site, rpc.JSON, "{}\n") // a second stream
	if err == nil {
		_, err = s.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err = open(ctx, other, site, rpc.JSON, "{}\n")
	if err == nil {
		_, err = s.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a stranger has a third stream")
	}
	admitted.Store(true)
	res, err := c.Call(ctx, ask(4, "echo", strings.Repeat("x", 20<<10)), nil) // more than a stranger may say
	if got := text(t, res, err); len(got) != 20<<10+2 {
		t.Errorf("%d bytes came back", len(got))
	}
	if !site.ConnManager().IsProtected(other.ID(), knownTag) {
		t.Error("who became known is as easily sent away as a stranger")
	}
	c.Close()
	for _, ended := range []<-chan error{one, two} {
		if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}
}

// TestStrangerSendsTooMuch: one message beyond the bound ends the stream, and says why.
func TestStrangerSendsTooMuch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	site, other := newHost(t, Options{}, overTCP), newHost(t, Options{})
	serve(t, site, func(rpc.Evidence) error { return errStranger })
	for codec, long := range map[rpc.Codec]string{
		rpc.JSON: `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 17<<10) + "\"}\n",
		rpc.CBOR: "\x7a\x00\x00\x50\x00",
	} {
		s, err := open(ctx, other, site, codec, long)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := io.ReadAll(s)
		if !bytes.Contains(all, []byte("a message has at most 16384 bytes")) {
			t.Errorf("%s: it was told %q", codec.ContentType(), all)
		}
	}
}

// TestManyStreams: a stranger who opens one stream after the other, of whatever kind, is
// sent away.
func TestManyStreams(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	site, other := newHost(t, Options{}, overTCP), newHost(t, Options{})
	if err := other.Connect(ctx, peer.AddrInfo{ID: site.ID(), Addrs: site.Addrs()}); err != nil {
		t.Fatal(err)
	}
	conn := other.Network().ConnsToPeer(site.ID())[0]
	for range 2 * maxStreamsPerConn {
		s, err := conn.NewStream(ctx)
		if err != nil {
			break
		}
		s.SetDeadline(time.Now().Add(patience))
		io.WriteString(s, "\x13/multistream/1.0.0\n") // and no more
	}
	s, err := conn.NewStream(ctx)
	if err == nil {
		s.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadAll(s)
	}
	if err == nil || !conn.IsClosed() {
		t.Errorf("the stranger is still there: %v", err)
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
		if !bytes.Contains(told, []byte(map[rpc.Codec]string{rpc.CBOR: "CBOR", rpc.JSON: "a message has at most"}[codec])) {
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
