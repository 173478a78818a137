package memnet

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

// conn is one end of a connection.
type conn struct {
	local, remote, via *Host // via is the relay, nil for a direct connection
	other              *conn
	dialler            bool
	opened             time.Time
	number             int64

	mu      sync.Mutex
	streams map[*stream]struct{}
	closed  bool
}

var (
	_           network.Conn = (*conn)(nil)
	connNumbers atomic.Int64
)

func newConns(from, to, via *Host) (out, in *conn) {
	n, now := connNumbers.Add(1), time.Now()
	out = &conn{
		local: from, remote: to, via: via, dialler: true, opened: now, number: n, streams: make(map[*stream]struct{}),
	}
	in = &conn{local: to, remote: from, via: via, opened: now, number: n, streams: make(map[*stream]struct{}), other: out}
	out.other = in
	return out, in
}

// open opens a stream. The other end serves it after the delay of the way.
func (c *conn) open(id protocol.ID) (network.Stream, error) {
	near, far := newStreams(c, id)
	if !c.hold(near) {
		return nil, network.ErrReset
	}
	time.AfterFunc(c.local.delay(c.remote, c.via), func() {
		c.remote.mu.Lock()
		handle := c.remote.handlers[id]
		c.remote.mu.Unlock()
		if c.remote.dead.Load() || handle == nil || !c.other.hold(far) {
			_ = far.Reset()
			return
		}
		handle(far)
	})
	return near, nil
}

func (c *conn) hold(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.streams[s] = struct{}{}
	}
	return !c.closed
}

func (c *conn) release(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
}

// used reports whether there are streams other than those of a protocol.
func (c *conn) used(besides protocol.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		if s.id != besides {
			return true
		}
	}
	return false
}

// end ends this end of the connection, and tells nobody.
func (c *conn) end() {
	c.mu.Lock()
	was, streams := c.closed, c.streams
	c.closed, c.streams = true, nil
	c.mu.Unlock()
	if was {
		return
	}
	for s := range streams {
		s.in.fail(time.Now())
	}
	if c.via != nil {
		c.via.mu.Lock()
		delete(c.via.circuits, c)
		c.via.mu.Unlock()
	}
	c.local.remove(c)
}

// Close implements network.Conn, as the following do.
func (c *conn) Close() error {
	c.end()
	if !c.local.dead.Load() {
		time.AfterFunc(c.local.delay(c.remote, c.via), c.other.end)
	}
	return nil
}

func (c *conn) CloseWithError(network.ConnErrorCode) error { return c.Close() }
func (c *conn) ID() string                                 { return strconv.FormatInt(c.number, 10) }
func (c *conn) LocalPeer() peer.ID                         { return c.local.id }
func (c *conn) RemotePeer() peer.ID                        { return c.remote.id }
func (c *conn) RemotePublicKey() crypto.PubKey             { return c.local.peers.PubKey(c.remote.id) }
func (c *conn) ConnState() network.ConnectionState {
	return network.ConnectionState{Transport: "memory"}
}
func (c *conn) LocalMultiaddr() ma.Multiaddr { return c.local.addr }
func (c *conn) Scope() network.ConnScope     { return &network.NullScope{} }
func (c *conn) As(any) bool                  { return false }

func (c *conn) NewStream(context.Context) (network.Stream, error) {
	return nil, errors.New("memnet: a stream has a protocol; open it on the host")
}

func (c *conn) RemoteMultiaddr() ma.Multiaddr {
	if c.via == nil {
		return c.remote.addr
	}
	return c.via.circuit
}

func (c *conn) GetStreams() (all []network.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		all = append(all, s)
	}
	return all
}

func (c *conn) IsClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *conn) Stat() network.ConnStats {
	way := network.DirInbound
	if c.dialler {
		way = network.DirOutbound
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return network.ConnStats{
		Stats: network.Stats{Direction: way, Opened: c.opened, Limited: c.via != nil}, NumStreams: len(c.streams),
	}
}

// swarm is a host's network.Network. Protocols are those of the host.
type swarm struct{ h *Host }

// Peerstore implements network.Network, as the following do.
func (s *swarm) Peerstore() peerstore.Peerstore                    { return s.h.peers }
func (s *swarm) LocalPeer() peer.ID                                { return s.h.id }
func (s *swarm) Connectedness(p peer.ID) network.Connectedness     { return s.h.connectednessTo(p) }
func (s *swarm) Notify(network.Notifiee)                           {}
func (s *swarm) StopNotify(network.Notifiee)                       {}
func (s *swarm) CanDial(peer.ID, ma.Multiaddr) bool                { return true }
func (s *swarm) Close() error                                      { return s.h.Close() }
func (s *swarm) SetStreamHandler(network.StreamHandler)            {}
func (s *swarm) Listen(...ma.Multiaddr) error                      { return nil }
func (s *swarm) ListenAddresses() []ma.Multiaddr                   { return s.h.Addrs() }
func (s *swarm) InterfaceListenAddresses() ([]ma.Multiaddr, error) { return s.h.Addrs(), nil }
func (s *swarm) ResourceManager() network.ResourceManager          { return &network.NullResourceManager{} }
func (s *swarm) NewStream(context.Context, peer.ID) (network.Stream, error) {
	return nil, errors.New("memnet: a stream has a protocol; open it on the host")
}

func (s *swarm) DialPeer(ctx context.Context, p peer.ID) (network.Conn, error) {
	if err := s.h.Connect(ctx, peer.AddrInfo{ID: p}); err != nil {
		return nil, err
	}
	for _, c := range s.h.connsTo(p) {
		return c, nil
	}
	return nil, network.ErrNoConn
}

func (s *swarm) ClosePeer(p peer.ID) error {
	for _, c := range s.h.connsTo(p) {
		_ = c.Close()
	}
	return nil
}

func (s *swarm) Peers() (all []peer.ID) {
	for _, c := range s.h.all() {
		if !slices.Contains(all, c.remote.id) {
			all = append(all, c.remote.id)
		}
	}
	return all
}

func (s *swarm) Conns() (all []network.Conn) {
	for _, c := range s.h.all() {
		all = append(all, c)
	}
	return all
}

func (s *swarm) ConnsToPeer(p peer.ID) (all []network.Conn) {
	for _, c := range s.h.connsTo(p) {
		all = append(all, c)
	}
	return all
}
