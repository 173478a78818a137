package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	// movePatience is how long a call waits for a better stream while there is one.
	upgradeTimeout = 2 * time.Second
	// alivePatience is how long a connection may take to show that it is one.
	probeTimeout = 3 * time.Second
	// goodbye is how long the far side may take to end a stream that was ended here.
	hangUpTimeout = 10 * time.Second
)

// Unreached is why a site was not asked: no stream to it came about.
type UnreachableError struct{ Err error }

func (u *UnreachableError) Error() string { return u.Err.Error() }
func (u *UnreachableError) Unwrap() error { return u.Err }

// Caller calls one site, over one stream as long as that will do. It connects when it has
// to; it goes over to a connection without a relay as soon as there is one. It is safe for
// concurrent use.
type Caller struct {
	host    *Host
	site    peer.ID
	addrs   func() []string
	codec   rpc.Codec
	opening chan struct{} // to open a stream

	mu      sync.Mutex
	stream  *clientStream // for what is asked next; nil for none
	suspect bool          // whether the connection is alive
}

var _ rpc.Caller = (*Caller)(nil)

// Caller makes one. addrs are asked for with each connection, and may be none where the
// site gave its own earlier; they are multiaddrs without the site's peer ID at the end.
// Nothing is connected before the first call.
func (h *Host) Caller(site identity.ID, addrs func() []string, codec rpc.Codec) *Caller {
	who, _ := PeerID(site) // what is nobody is not reached
	return &Caller{host: h, site: who, addrs: addrs, codec: codec, opening: make(chan struct{}, 1)}
}

// Call is an rpc.Caller's. An error before anything was asked is an *Unreached. When the
// way breaks down meanwhile it is io.ErrUnexpectedEOF, and the next call finds another.
func (c *Caller) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	l, err := c.acquire(ctx)
	if err != nil {
		return rpc.Raw{}, &UnreachableError{err}
	}
	heard := l.reads.Load()
	res, err := l.client.Call(ctx, r, note)
	silent := errors.Is(err, context.DeadlineExceeded) && heard == l.reads.Load()
	c.release(l, silent)
	return res, err
}

// Path is how the site is called now; "" while it is not.
func (c *Caller) Path() Path {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return ""
	}
	return c.host.path(c.stream.Conn())
}

// Fresh has what is asked next be asked on a new stream, and its connection be looked at
// before. Calls that are under way go on.
func (c *Caller) InvalidateRoute() {
	c.setStream(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspect = true
}

// Close ends the stream, and with it the calls that are under way. A later call opens
// another.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return nil
	}
	l := c.stream
	c.stream = nil
	return l.Close()
}

// line is one stream.
type clientStream struct {
	network.Stream
	client  *rpc.StreamClient
	relayed bool          // over a relay
	reads   atomic.Uint64 // how often something came

	calls int // that are under way; guarded by the Caller's mu
}

// Read has every way in which a stream ends before its time look alike.
func (l *clientStream) Read(b []byte) (int, error) {
	n, err := l.Stream.Read(b)
	if n > 0 {
		l.reads.Add(1)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
	}
	return n, err
}

// Close waits for nobody.
func (l *clientStream) Close() error { return l.Reset() }

// hangUp lets the far side end the stream.
func (l *clientStream) hangUp() {
	l.CloseWrite()
	l.SetReadDeadline(time.Now().Add(hangUpTimeout))
}

// take returns the line for a call, which leave gives back.
func (c *Caller) acquire(ctx context.Context) (*clientStream, error) {
	if l := c.tryAcquire(c.usable); l != nil {
		return l, nil
	}
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := c.tryAcquire(c.usable); l != nil { // somebody else's turn brought it
		return l, nil
	}
	err := c.open(ctx)
	if l := c.tryAcquire(func(*clientStream) bool { return true }); l != nil { // no better one, where that failed
		return l, nil
	}
	return nil, errors.Join(err, ctx.Err())
}

// use begins a call on the line that there is, if it will do.
func (c *Caller) tryAcquire(does func(*clientStream) bool) *clientStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil || !does(c.stream) {
		return nil
	}
	c.stream.calls++
	return c.stream
}

// good reports whether there need be no better line. On one that is full the site refuses
// what else is asked, though it were urgent.
func (c *Caller) usable(l *clientStream) bool {
	return l.calls < rpc.MaxInFlight && !(l.relayed && c.host.hasDirectConn(c.site))
}

// leave ends a call. A site that said nothing may be gone.
func (c *Caller) release(l *clientStream, silent bool) {
	c.mu.Lock()
	l.calls--
	if silent {
		c.suspect = true
		c.drop(l)
	}
	last := l != c.stream && l.calls == 0
	c.mu.Unlock()
	if last {
		l.hangUp()
	}
}

// forget has nothing more be asked on a line. It is called with mu held.
func (c *Caller) drop(l *clientStream) {
	if c.stream == l {
		c.stream = nil
	}
}

// replace has what is asked next be asked on another line; nil for one that is not open yet.
func (c *Caller) setStream(by *clientStream) {
	c.mu.Lock()
	old := c.stream
	c.stream = by
	last := old != nil && old.calls == 0
	c.mu.Unlock()
	if last {
		old.hangUp()
	}
}

// open brings a line. While there is another that will do, it takes no long time.
func (c *Caller) open(ctx context.Context) error {
	c.mu.Lock()
	moving, doubt := c.stream != nil, c.suspect
	c.suspect = false
	c.mu.Unlock()
	if moving {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, upgradeTimeout)
		defer cancel()
	}
	if doubt && c.host.isConnected(c.site) {
		c.host.closeIfUnresponsive(ctx, c.site)
	}
	if err := c.host.reach(ctx, c.site, c.addrs()); err != nil {
		return err
	}
	s, err := c.host.openStream(ctx, c.site, protocolOf(c.codec))
	if err != nil {
		return err
	}
	l := &clientStream{Stream: s, relayed: IsRelayed(s.Conn().RemoteMultiaddr())}
	l.client = rpc.NewStreamClient(l, c.codec)
	c.setStream(l)
	c.host.spawn(func() {
		l.client.Run()
		c.mu.Lock()
		c.drop(l)
		c.mu.Unlock()
		l.Close()
	})
	return nil
}

// stream opens one on the best connection that there is.
func (h *Host) openStream(ctx context.Context, who peer.ID, id protocol.ID) (network.Stream, error) {
	return h.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, limitedReason), limitedReason), who, id)
}

// alive ends the connections to a peer that are dead, which may be long unnoticed.
func (h *Host) closeIfUnresponsive(ctx context.Context, who peer.ID) {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := h.ping(asking, who); err != nil && ctx.Err() == nil {
		h.Network().ClosePeer(who)
	}
}
