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
	// upgradeTimeout bounds how long a call waits for a better stream while there is one.
	upgradeTimeout = 2 * time.Second
	// hangUpTimeout bounds how long the other side may take to end a stream that was ended
	// here.
	hangUpTimeout = 10 * time.Second
)

// UnreachableError is returned where no stream to a site could be opened: nothing was sent.
type UnreachableError struct{ Err error }

func (u *UnreachableError) Error() string { return u.Err.Error() }
func (u *UnreachableError) Unwrap() error { return u.Err }

// Caller calls one site over one stream as long as that works. It connects when needed, and
// moves to a direct connection as soon as there is one. It is safe for concurrent use.
type Caller struct {
	host    *Host
	site    peer.ID
	reach   func(context.Context) error
	codec   rpc.Codec
	opening chan struct{} // holds one value while a stream is opened

	mu      sync.Mutex
	stream  *clientStream // for the next call; nil for none
	suspect bool          // the connection may be dead
}

var _ rpc.Caller = (*Caller)(nil)

// Caller returns a Caller, which connects at its first call. addrs is called for each connection
// and returns multiaddrs without the site's peer ID. It may return none if the site gave its
// addresses earlier.
func (h *Host) Caller(site identity.ID, addrs func() []string, codec rpc.Codec) *Caller {
	return h.CallerBy(site, func(ctx context.Context) error { return h.Reach(ctx, site, addrs()) }, codec)
}

// CallerBy is Caller with a function that connects the host to the site, unless it is connected.
func (h *Host) CallerBy(site identity.ID, reach func(context.Context) error, codec rpc.Codec) *Caller {
	who, _ := PeerID(site) // an invalid ID is not reached
	return &Caller{host: h, site: who, reach: reach, codec: codec, opening: make(chan struct{}, 1)}
}

// Call implements rpc.Caller. An error before anything was sent is an *UnreachableError. If
// the stream breaks later it is io.ErrUnexpectedEOF, and the next call opens another. A repeatable
// request without notifications is sent once more then.
func (c *Caller) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	var sent error
	for {
		cs, err := c.acquire(ctx)
		switch {
		case err != nil && sent != nil:
			return rpc.Raw{}, sent
		case err != nil:
			return rpc.Raw{}, &UnreachableError{err}
		}
		res, err := c.callOn(ctx, cs, r, note)
		if sent != nil || !r.Repeatable || note != nil || !errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
			return res, err
		}
		sent = err
	}
}

// callOn calls over one stream, which it releases. When the stream is replaced, a repeatable request
// and a subscription fail with io.ErrUnexpectedEOF; others go on.
func (c *Caller) callOn(ctx context.Context, cs *clientStream, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.Repeatable || note != nil {
		defer context.AfterFunc(cs.replaced, func() { cancel(errReplaced) })()
	}
	heard := cs.reads.Load()
	defer time.AfterFunc(silentTimeout, func() { c.checkWhileSilent(calling, cs, heard, note == nil) }).Stop()
	res, err := cs.client.Call(calling, r, note)
	if errors.Is(err, context.Canceled) && context.Cause(calling) == errReplaced {
		err = errReplaced
	}
	silent := errors.Is(err, context.DeadlineExceeded) && heard == cs.reads.Load()
	c.release(cs, silent)
	return res, err
}

// Path returns how the site is called now, "" while it is not connected.
func (c *Caller) Path() Path {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return ""
	}
	return c.host.path(c.stream.Conn())
}

// InvalidateRoute makes the next call check the connection and open a new stream. Running
// calls go on.
func (c *Caller) InvalidateRoute() {
	c.setStream(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspect = true
}

// Close closes the stream, which fails its running calls. A later call opens another.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		return nil
	}
	cs := c.stream
	c.stream = nil
	return cs.Close()
}

// clientStream is one stream to a site.
type clientStream struct {
	network.Stream
	client  *rpc.StreamClient
	relayed bool
	reads   atomic.Uint64 // counts reads with data

	replaced context.Context // ends when another connection has replaced the stream's
	replace  context.CancelFunc

	calls int // running; guarded by the Caller's mu
}

// Read returns io.ErrUnexpectedEOF for whatever breaks the stream.
func (cs *clientStream) Read(b []byte) (int, error) {
	n, err := cs.Stream.Read(b)
	if n > 0 {
		cs.reads.Add(1)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
	}
	return n, err
}

// Close resets the stream.
func (cs *clientStream) Close() error { return cs.Reset() }

// hangUp ends the stream once the other side does, or after hangUpTimeout.
func (cs *clientStream) hangUp() {
	cs.CloseWrite()
	cs.SetReadDeadline(time.Now().Add(hangUpTimeout))
}

// acquire returns the stream for a call, which the caller gives back by release.
func (c *Caller) acquire(ctx context.Context) (*clientStream, error) {
	if cs := c.tryAcquire(c.usable); cs != nil {
		return cs, nil
	}
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if cs := c.tryAcquire(c.usable); cs != nil { // another call opened it
		return cs, nil
	}
	err := c.open(ctx)
	if cs := c.tryAcquire(func(*clientStream) bool { return true }); cs != nil { // where that failed, the old one
		return cs, nil
	}
	return nil, errors.Join(err, ctx.Err())
}

// tryAcquire returns the current stream if ok accepts it, and nil otherwise.
func (c *Caller) tryAcquire(does func(*clientStream) bool) *clientStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil || !does(c.stream) {
		return nil
	}
	c.stream.calls++
	return c.stream
}

// usable reports whether no better stream is needed. On a full one the site refuses further
// calls, even urgent ones.
func (c *Caller) usable(cs *clientStream) bool {
	return cs.calls < rpc.MaxInFlight && !(cs.relayed && c.host.hasDirectConn(c.site))
}

// release ends a call. silent says that the site answered nothing in time.
func (c *Caller) release(cs *clientStream, silent bool) {
	c.mu.Lock()
	cs.calls--
	if silent {
		c.suspect = true
		c.drop(cs)
	}
	last := cs != c.stream && cs.calls == 0
	c.mu.Unlock()
	if last {
		cs.hangUp()
	}
}

// drop takes a stream out of use. The caller holds mu.
func (c *Caller) drop(cs *clientStream) {
	if c.stream == cs {
		c.stream = nil
	}
}

// setStream replaces the stream for new calls; nil makes the next call open one.
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

// open opens a stream. While there is another one it gives up after upgradeTimeout.
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
		if err := c.host.probe(ctx, c.site, c.reach); err != nil && err != errReplaced && ctx.Err() == nil {
			c.host.Network().ClosePeer(c.site) // QUIC and TCP notice a dead connection late
		}
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	return c.openStream(ctx)
}

// openStream opens a stream on the best existing connection, for the next calls.
func (c *Caller) openStream(ctx context.Context) error {
	s, err := c.host.openStream(ctx, c.site, protocolOf(c.codec))
	if err != nil {
		return err
	}
	cs := &clientStream{Stream: s, relayed: IsRelayed(s.Conn().RemoteMultiaddr())}
	cs.client = rpc.NewStreamClient(cs, c.codec)
	cs.replaced, cs.replace = context.WithCancel(context.Background())
	c.setStream(cs)
	c.host.spawn(func() {
		cs.client.Run()
		c.mu.Lock()
		c.drop(cs)
		c.mu.Unlock()
		cs.Close()
		if isDoubted(cs.Conn()) {
			cs.Conn().Close()
		}
		cs.replace()
	})
	return nil
}

// openStream opens a stream on the best existing connection.
func (h *Host) openStream(ctx context.Context, who peer.ID, id protocol.ID) (network.Stream, error) {
	return h.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, limitedReason), limitedReason), who, id)
}
