package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	ma "github.com/multiformats/go-multiaddr"
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

// TestStrangerConnLimit: sixty strangers are connected, and a known peer still connects and calls.
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
	serve(t, site, func(peer string) error {
		if id, err := identity.Parse(peer); err == nil && known(id) {
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

// TestStrangerEviction: a stranger that connects over a relay repeatedly, or with many keys, evicts
// none from elsewhere, nor one over the same relay with another key.
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

// TestRelayStrangers: a relay limits connections of strangers, and of one network; peers with a
// reservation are spared.
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
	named := come(3000, "/ip4/192.0.2.1")
	conns.Protect(named.who, PublicNameTag)
	for i := range 2 * maxPerPrefix {
		come(1+i, "/ip4/192.0.2.1")
	}
	other := come(1000, "/ip4/192.0.2.2")
	if n := len(p.inbound); n > maxPerPrefix+3 {
		t.Errorf("one network has %d connections", n)
	}
	for i := range 2 * maxRelayStrangers {
		come(2000+i, fmt.Sprintf("/ip4/198.51.100.%d", i%100))
	}
	if n := len(p.inbound); n > maxRelayStrangers+2 || !p.has(site) || !p.has(named) || !p.has(other) {
		t.Errorf("strangers have %d connections; who has a place is there: %v, who has a name: %v, who has few: %v", n, p.has(site), p.has(named), p.has(other))
	}
}

// TestStrangerStreamEviction: as many strangers as there are places for sit there and say
// nothing. Another one, who may have come to claim the site, is heard.
func TestStrangerStreamEviction(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	site := newHost(t, Options{}, overTCP)
	serve(t, site, func(string) error { return errStranger })
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

// TestStranger: the requests that a stranger may make, and the further ones once the site knows it.
func TestStranger(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var admitted atomic.Bool
	site, other := newHost(t, Options{}, overTCP), newHost(t, Options{})
	serve(t, site, func(string) error {
		if admitted.Load() {
			return nil
		}
		return errStranger
	})
	c := other.Caller(site.id(t), site.at, rpc.CBOR)
	defer c.Close()
	wait := func(id uint64) <-chan error {
		waiting, ended := make(chan bool, 1), make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, ask(id, "wait", nil), func(string, rpc.Raw) {
				select {
				case waiting <- true:
				default: // another's
				}
			})
			ended <- err
		}()
		select {
		case <-waiting:
		case err := <-ended:
			t.Fatal(err)
		}
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
	serve(t, site, func(string) error { return errStranger })
	for codec, long := range map[rpc.Codec]string{
		rpc.JSON: `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 17<<10) + "\"}\n",
		rpc.CBOR: "\x7a\x00\x00\x50\x00",
	} {
		s, err := open(ctx, other, site, codec, long)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := io.ReadAll(s)
		if !bytes.Contains(all, []byte("at most 16384 bytes")) {
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
