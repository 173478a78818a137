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
	movePatience = 2 * time.Second
	// alivePatience is how long a connection may take to show that it is one.
	alivePatience = 3 * time.Second
	// goodbye is how long the far side may take to end a stream that was ended here.
	goodbye = 10 * time.Second
)

// Unreached is why a site was not asked: no stream to it came about.
type Unreached struct{ Err error }

func (u *Unreached) Error() string { return u.Err.Error() }
func (u *Unreached) Unwrap() error { return u.Err }

// Caller calls one site, over one stream as long as that will do. It connects when it has
// to; it goes over to a connection without a relay as soon as there is one. It is safe for
// concurrent use.
type Caller struct {
	host  *Host
	site  peer.ID
	addrs func() []string
	codec rpc.Codec
	turn  chan struct{} // to open a stream

	mu    sync.Mutex
	line  *line // for what is asked next; nil for none
	doubt bool  // whether the connection is alive
}

var _ rpc.Caller = (*Caller)(nil)

// Caller makes one. addrs are asked for with each connection, and may be none where the
// site gave its own earlier; they are multiaddrs without the site's peer ID at the end.
// Nothing is connected before the first call.
func (h *Host) Caller(site identity.ID, addrs func() []string, codec rpc.Codec) *Caller {
	who, _ := PeerOf(site) // what is nobody is not reached
	return &Caller{host: h, site: who, addrs: addrs, codec: codec, turn: make(chan struct{}, 1)}
}

// Call is an rpc.Caller's. An error before anything was asked is an *Unreached. When the
// way breaks down meanwhile it is io.ErrUnexpectedEOF, and the next call finds another.
func (c *Caller) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	l, err := c.take(ctx)
	if err != nil {
		return rpc.Raw{}, &Unreached{err}
	}
	heard := l.heard.Load()
	res, err := l.client.Call(ctx, r, note)
	silent := errors.Is(err, context.DeadlineExceeded) && heard == l.heard.Load()
	c.leave(l, silent)
	return res, err
}

// Path is how the site is called now; "" while it is not.
func (c *Caller) Path() Path {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil {
		return ""
	}
	return c.host.path(c.line.Conn())
}

// Fresh has what is asked next be asked on a new stream, and its connection be looked at
// before. Calls that are under way go on.
func (c *Caller) Fresh() {
	c.replace(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubt = true
}

// Close ends the stream, and with it the calls that are under way. A later call opens
// another.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil {
		return nil
	}
	l := c.line
	c.line = nil
	return l.Close()
}

// line is one stream.
type line struct {
	network.Stream
	client *rpc.StreamClient
	around bool          // over a relay
	heard  atomic.Uint64 // how often something came

	calls int // that are under way; guarded by the Caller's mu
}

// Read has every way in which a stream ends before its time look alike.
func (l *line) Read(b []byte) (int, error) {
	n, err := l.Stream.Read(b)
	if n > 0 {
		l.heard.Add(1)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
	}
	return n, err
}

// Close waits for nobody.
func (l *line) Close() error { return l.Reset() }

// hangUp lets the far side end the stream.
func (l *line) hangUp() {
	l.CloseWrite()
	l.SetReadDeadline(time.Now().Add(goodbye))
}

// take returns the line for a call, which leave gives back.
func (c *Caller) take(ctx context.Context) (*line, error) {
	if l := c.use(c.good); l != nil {
		return l, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := c.use(c.good); l != nil { // somebody else's turn brought it
		return l, nil
	}
	err := c.open(ctx)
	if l := c.use(func(*line) bool { return true }); l != nil { // no better one, where that failed
		return l, nil
	}
	return nil, errors.Join(err, ctx.Err())
}

// use begins a call on the line that there is, if it will do.
func (c *Caller) use(does func(*line) bool) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil || !does(c.line) {
		return nil
	}
	c.line.calls++
	return c.line
}

// good reports whether there need be no better line. On one that is full the site refuses
// what else is asked, though it were urgent.
func (c *Caller) good(l *line) bool {
	return l.calls < rpc.MaxInFlight && !(l.around && c.host.straight(c.site))
}

// leave ends a call. A site that said nothing may be gone.
func (c *Caller) leave(l *line, silent bool) {
	c.mu.Lock()
	l.calls--
	if silent {
		c.doubt = true
		c.forget(l)
	}
	last := l != c.line && l.calls == 0
	c.mu.Unlock()
	if last {
		l.hangUp()
	}
}

// forget has nothing more be asked on a line. It is called with mu held.
func (c *Caller) forget(l *line) {
	if c.line == l {
		c.line = nil
	}
}

// replace has what is asked next be asked on another line; nil for one that is not open yet.
func (c *Caller) replace(by *line) {
	c.mu.Lock()
	old := c.line
	c.line = by
	last := old != nil && old.calls == 0
	c.mu.Unlock()
	if last {
		old.hangUp()
	}
}

// open brings a line. While there is another that will do, it takes no long time.
func (c *Caller) open(ctx context.Context) error {
	c.mu.Lock()
	moving, doubt := c.line != nil, c.doubt
	c.doubt = false
	c.mu.Unlock()
	if moving {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, movePatience)
		defer cancel()
	}
	if doubt && c.host.connected(c.site) {
		c.host.alive(ctx, c.site)
	}
	if err := c.host.reach(ctx, c.site, c.addrs()); err != nil {
		return err
	}
	s, err := c.host.stream(ctx, c.site, protocolOf(c.codec))
	if err != nil {
		return err
	}
	l := &line{Stream: s, around: OverRelay(s.Conn().RemoteMultiaddr())}
	l.client = rpc.NewStreamClient(l, c.codec)
	c.replace(l)
	c.host.run(func() {
		l.client.Run()
		c.mu.Lock()
		c.forget(l)
		c.mu.Unlock()
		l.Close()
	})
	return nil
}

// stream opens one on the best connection that there is.
func (h *Host) stream(ctx context.Context, who peer.ID, id protocol.ID) (network.Stream, error) {
	return h.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, why), why), who, id)
}

// alive ends the connections to a peer that are dead, which may be long unnoticed.
func (h *Host) alive(ctx context.Context, who peer.ID) {
	asking, cancel := context.WithTimeout(ctx, alivePatience)
	defer cancel()
	if _, err := h.ping(asking, who); err != nil && ctx.Err() == nil {
		h.Network().ClosePeer(who)
	}
}
