package p2p

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
)

// circuitTransport is the transport for connections through relays. It dials a peer through several
// relays at the same time. A client of the library dials a peer through one relay after the other,
// and waits for each that does not answer.
type circuitTransport struct {
	*circuit.Client // accepts connections
	host            host.Host
	upgrader        transport.Upgrader

	mu      sync.Mutex
	dialing map[peer.ID]*relayDials // by relay
}

// relayDials are the running dials through one relay.
type relayDials struct {
	client *circuit.Client
	dials  int
}

// addCircuits makes a host accept and dial connections through relays.
func addCircuits(h host.Host, network *swarm.Swarm, up transport.Upgrader) error {
	inbound, err := circuit.New(h, up)
	if err != nil {
		return err
	}
	t := &circuitTransport{Client: inbound, host: h, upgrader: up, dialing: make(map[peer.ID]*relayDials)}
	if err := network.AddTransport(t); err != nil {
		return err
	}
	if err := network.Listen(ma.StringCast("/p2p-circuit")); err != nil {
		return err
	}
	inbound.Start()
	return nil
}

// Dial implements transport.Transport.
func (t *circuitTransport) Dial(ctx context.Context, a ma.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	relay := relayOf(a)
	c, err := t.acquire(relay)
	if err != nil {
		return nil, err
	}
	defer t.release(relay)
	conn, err := c.Dial(ctx, a, p)
	if err != nil {
		return nil, err
	}
	return &circuitConn{CapableConn: conn}, nil
}

// circuitConn is a connection through a relay.
type circuitConn struct {
	transport.CapableConn
	doubted atomic.Bool
}

// IsClosed reports true for a doubted connection, too, so that the host dials another one. Streams of a
// doubted connection go on.
func (c *circuitConn) IsClosed() bool { return c.doubted.Load() || c.CapableConn.IsClosed() }

// Stat implements network.ConnStat.
func (c *circuitConn) Stat() (s network.ConnStats) {
	if of, ok := c.CapableConn.(network.ConnStat); ok {
		s = of.Stat()
	}
	return s
}

// As implements network.MuxedConn.
func (c *circuitConn) As(target any) bool {
	if t, ok := target.(**circuitConn); ok {
		*t = c
		return true
	}
	return c.CapableConn.As(target)
}

// isDoubted reports whether another connection replaces this one, or may.
func isDoubted(conn network.Conn) bool {
	var c *circuitConn
	return conn.As(&c) && c.doubted.Load()
}

// acquire returns the client for dials through a relay.
func (t *circuitTransport) acquire(relay peer.ID) (*circuit.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dialing[relay]
	if d == nil {
		c, err := circuit.New(t.host, t.upgrader)
		if err != nil {
			return nil, err
		}
		d = &relayDials{client: c}
		t.dialing[relay] = d
	}
	d.dials++
	return d.client, nil
}

// release ends a dial, and removes the client of the last.
func (t *circuitTransport) release(relay peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dialing[relay]
	if d.dials--; d.dials == 0 {
		delete(t.dialing, relay)
	}
}
