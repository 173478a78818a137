package public

import (
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// maxOpen bounds the connections of all callers that relays pass on, and maxOfRelay those of one relay, whatever the
// relays permit. They count until they are closed.
const (
	maxOpen       = 96
	maxOfRelay    = 48
	headerTimeout = 5 * time.Second
)

// Listener accepts the connections that a site's relays pass on. RemoteAddr of one is where the relay says that
// its caller is, which is of use for limits and logs, and proves nothing.
type Listener struct {
	host   host.Host
	relays []peer.ID
	conns  chan net.Conn
	held   quota.Quota

	closing sync.Once
	closed  chan struct{}
}

// Listen accepts connections from these relays and from nobody else.
func Listen(h host.Host, relays []peer.ID) *Listener {
	l := &Listener{host: h, relays: relays, conns: make(chan net.Conn), closed: make(chan struct{})}
	h.SetStreamHandler(tlsProtocol, l.accept)
	return l
}

// accept serves a stream, in a goroutine of its own.
func (l *Listener) accept(s network.Stream) {
	if c := s.Conn(); c.Stat().Limited || !slices.Contains(l.relays, c.RemotePeer()) {
		slog.Debug("a peer that is no relay of this site passes a caller on", "peer", c.RemotePeer())
		s.Reset()
		return
	}
	open := []quota.Limit{{Most: maxOpen}, {Group: s.Conn().RemotePeer(), Most: maxOfRelay}}
	if !l.held.Take(open...) {
		s.Reset()
		return
	}
	c := &conn{stream: s, release: sync.OnceFunc(func() { l.held.Release(open...) })}
	s.SetReadDeadline(time.Now().Add(headerTimeout))
	from, err := readHeader(s)
	if err != nil {
		s.Reset()
		c.release()
		return
	}
	s.SetReadDeadline(time.Time{})
	c.from = net.TCPAddrFromAddrPort(from)
	select {
	case l.conns <- c:
	case <-l.closed:
		s.Reset()
		c.release()
	}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections stay open.
func (l *Listener) Close() error {
	l.closing.Do(func() {
		l.host.RemoveStreamHandler(tlsProtocol)
		close(l.closed)
	})
	return nil
}

// Addr returns an address that is no IP address.
func (l *Listener) Addr() net.Addr { return relayed{} }

type relayed struct{}

func (relayed) Network() string { return "relay" }
func (relayed) String() string  { return "relay" }

// conn is a stream as a net.Conn.
type conn struct {
	stream  network.Stream
	from    net.Addr
	release func()
	writing sync.Mutex
}

func (c *conn) Read(b []byte) (int, error) { return c.stream.Read(b) }

func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.stream.Write(b)
}

// Close may be called while another goroutine writes, which QUIC's streams do not permit.
func (c *conn) Close() error {
	c.release()
	if !c.writing.TryLock() {
		return c.stream.Reset()
	}
	defer c.writing.Unlock()
	return c.stream.Close()
}

func (c *conn) LocalAddr() net.Addr                { return relayed{} }
func (c *conn) RemoteAddr() net.Addr               { return c.from }
func (c *conn) SetDeadline(t time.Time) error      { return c.stream.SetDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.stream.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.stream.SetWriteDeadline(t) }
