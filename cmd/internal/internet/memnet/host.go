package memnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	ma "github.com/multiformats/go-multiaddr"
)

// Host is a host in a Network. It is safe for concurrent use.
type Host struct {
	net     *Network
	id      peer.ID
	place   place
	addr    ma.Multiaddr
	circuit ma.Multiaddr    // of others, through it as a relay
	relays  []peer.AddrInfo // that others reach it through; nil for a public host
	peers   *peerBook
	bus     event.Bus
	keeps   connManager

	emitting                         sync.Mutex
	identified, connectedness, moved event.Emitter

	mu       sync.Mutex
	conns    map[peer.ID][]*conn
	circuits map[*conn]struct{} // one end of each that it relays
	handlers map[protocol.ID]network.StreamHandler
	serves   []protocol.ID // the names of handlers; replaced, never changed
	dialling map[peer.ID]chan struct{}
	traffic  map[protocol.ID]*counter
	dead     atomic.Bool

	dialled, accepted, relayedConns, relayedBytes atomic.Int64
}

type counter struct{ messages, sent, received atomic.Int64 }

var _ host.Host = (*Host)(nil)

// Host makes a host with this address, which is unique. It is behind a router if it has relays.
func (n *Network) Host(key crypto.PrivKey, addr ma.Multiaddr, relays ...peer.AddrInfo) (*Host, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	peers, err := newPeerBook(n)
	if err != nil {
		return nil, err
	}
	h := &Host{
		net: n, id: id, place: newPlace(), addr: addr, relays: relays, peers: peers, bus: eventbus.NewBus(),
		circuit: ma.StringCast(addr.String() + "/p2p/" + id.String() + "/p2p-circuit"),
		conns:   make(map[peer.ID][]*conn), circuits: make(map[*conn]struct{}),
		handlers: make(map[protocol.ID]network.StreamHandler), dialling: make(map[peer.ID]chan struct{}),
		traffic: make(map[protocol.ID]*counter),
	}
	var errs [5]error
	errs[0] = peers.AddPrivKey(id, key)
	errs[1] = peers.AddPubKey(id, key.GetPublic())
	h.identified, errs[2] = h.bus.Emitter(new(event.EvtPeerIdentificationCompleted))
	h.connectedness, errs[3] = h.bus.Emitter(new(event.EvtPeerConnectednessChanged))
	h.moved, errs[4] = h.bus.Emitter(new(event.EvtLocalAddressesUpdated))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[id] = h
	return h, nil
}

// ID implements host.Host, as the following do.
func (h *Host) ID() peer.ID                      { return h.id }
func (h *Host) Peerstore() peerstore.Peerstore   { return h.peers }
func (h *Host) Network() network.Network         { return &swarm{h} }
func (h *Host) Mux() protocol.Switch             { return nil }
func (h *Host) ConnManager() connmgr.ConnManager { return &h.keeps }
func (h *Host) EventBus() event.Bus              { return h.bus }

// Addrs returns the public address, or those through relays.
func (h *Host) Addrs() (all []ma.Multiaddr) {
	if len(h.relays) == 0 {
		return []ma.Multiaddr{h.addr}
	}
	for _, r := range h.relays {
		for _, c := range h.connsTo(r.ID) {
			if c.via == nil {
				all = append(all, c.remote.circuit)
				break
			}
		}
	}
	return all
}

// SetStreamHandler implements host.Host. Hosts that are connected already do not learn of it.
func (h *Host) SetStreamHandler(id protocol.ID, handle network.StreamHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers[id] = handle
	h.serves = slices.Collect(maps.Keys(h.handlers))
}

// SetStreamHandlerMatch is not supported.
func (h *Host) SetStreamHandlerMatch(protocol.ID, func(protocol.ID) bool, network.StreamHandler) {
	panic("memnet: protocols are matched by their names only")
}

// RemoveStreamHandler implements host.Host.
func (h *Host) RemoveStreamHandler(id protocol.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.handlers, id)
	h.serves = slices.Collect(maps.Keys(h.handlers))
}

func (h *Host) protocols() []protocol.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serves
}

// Close ends all connections.
func (h *Host) Close() error {
	for _, c := range h.all() {
		c.Close()
	}
	h.Vanish()
	return h.peers.Close()
}

// Vanish cuts the host's power: it hears and says nothing any more, which others notice after a while.
func (h *Host) Vanish() {
	if h.dead.Swap(true) {
		return
	}
	h.net.mu.Lock()
	delete(h.net.hosts, h.id)
	h.net.mu.Unlock()
	var ends []*conn
	for _, c := range h.all() {
		ends = append(ends, c.other)
	}
	h.mu.Lock()
	for c := range h.circuits {
		ends = append(ends, c, c.other)
	}
	h.mu.Unlock()
	for _, c := range ends {
		time.AfterFunc(minSilence+rand.N(maxSilence-minSilence), c.end)
	}
}

// Usage returns the host's traffic and connections so far.
func (h *Host) Usage() Usage {
	u := Usage{
		Traffic: make(map[protocol.ID]Traffic), Dialled: h.dialled.Load(), Accepted: h.accepted.Load(),
		Circuits: h.relayedConns.Load(), Relayed: h.relayedBytes.Load(), Connections: len(h.all()),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, c := range h.traffic {
		u.Traffic[id] = Traffic{c.messages.Load(), c.sent.Load(), c.received.Load()}
	}
	return u
}

func (h *Host) counter(id protocol.ID) *counter {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.traffic[id]
	if c == nil {
		c = new(counter)
		h.traffic[id] = c
	}
	return c
}

func (h *Host) connsTo(p peer.ID) []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.conns[p])
}

func (h *Host) all() (all []*conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, some := range h.conns {
		all = append(all, some...)
	}
	return all
}

func (h *Host) connectednessTo(p peer.ID) network.Connectedness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return connectedness(h.conns[p])
}

func connectedness(all []*conn) network.Connectedness {
	state := network.NotConnected
	for _, c := range all {
		if c.via == nil {
			return network.Connected
		}
		state = network.Limited
	}
	return state
}

// delay returns the time that a packet takes to another host.
func (h *Host) delay(to, via *Host) time.Duration {
	if via != nil {
		return h.delay(via, nil) + via.delay(to, nil)
	}
	distance := math.Hypot(h.place.x-to.place.x, h.place.y-to.place.y) / math.Sqrt2
	return h.place.access + to.place.access + time.Duration(distance*float64(maxDistance))
}

// Connect implements host.Host.
func (h *Host) Connect(ctx context.Context, p peer.AddrInfo) error {
	if len(p.Addrs) > 0 {
		h.peers.AddAddrs(p.ID, p.Addrs, peerstore.TempAddrTTL)
	}
	direct, _ := network.GetForceDirectDial(ctx)
	for {
		if c := h.connectednessTo(p.ID); c == network.Connected || c == network.Limited && !direct {
			return nil
		}
		if no, _ := network.GetNoDial(ctx); no {
			return network.ErrNoConn
		}
		h.mu.Lock()
		dialling := h.dialling[p.ID]
		if dialling == nil {
			h.dialling[p.ID] = make(chan struct{})
		}
		h.mu.Unlock()
		if dialling == nil {
			err := h.dial(ctx, p.ID, direct)
			h.mu.Lock()
			close(h.dialling[p.ID])
			delete(h.dialling, p.ID)
			h.mu.Unlock()
			return err
		}
		select {
		case <-dialling:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNoAddress = errors.New("no address leads to the host")

// dial tries the known addresses of a host at once, and takes the fastest way.
func (h *Host) dial(ctx context.Context, p peer.ID, direct bool) error {
	remote, addrs := h.net.host(p), h.peers.Addrs(p)
	var relays []ma.Multiaddr
	reached := false
	for _, a := range addrs {
		if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err == nil {
			relays = append(relays, a)
		} else if remote != nil && len(remote.relays) == 0 && a.Equal(remote.addr) {
			reached = true
		}
	}
	silent := len(relays) < len(addrs) // whether an address may be one that nobody answers at
	if reached && !h.dead.Load() {
		return h.establish(ctx, remote, nil)
	}
	if !direct {
		for _, i := range rand.Perm(len(relays)) {
			via, err := h.reachRelay(ctx, relays[i])
			if err != nil {
				silent = true
				continue
			}
			if err := sleep(ctx, 2*h.delay(via, nil)); err != nil {
				return err
			}
			if remote != nil && via.connectednessTo(p) == network.Connected {
				return h.establish(ctx, remote, via)
			}
		}
	}
	if silent {
		if err := sleep(ctx, dialTimeout); err != nil {
			return err
		}
	}
	return errNoAddress
}

// reachRelay connects to the relay of a circuit's address.
func (h *Host) reachRelay(ctx context.Context, circuit ma.Multiaddr) (*Host, error) {
	i := slices.IndexFunc(circuit, func(c ma.Component) bool { return c.Protocol().Code == ma.P_P2P })
	if i < 0 {
		return nil, errNoAddress
	}
	id, err := peer.IDFromBytes(circuit[i].RawValue())
	if err != nil {
		return nil, err
	}
	relay := h.net.host(id)
	if relay == nil {
		return nil, errNoAddress
	}
	if relay == h {
		return h, nil
	}
	return relay, h.Connect(network.WithForceDirectDial(ctx, "relay"), peer.AddrInfo{
		ID: id, Addrs: []ma.Multiaddr{relay.addr},
	})
}

// establish makes a connection, in the time of two round trips: the handshake, and identification.
func (h *Host) establish(ctx context.Context, remote, via *Host) error {
	wait := 4 * h.delay(remote, via)
	if h.net.lost() {
		wait += redialDelay
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	if h.dead.Load() || remote.dead.Load() || via != nil && via.dead.Load() {
		if err := sleep(ctx, dialTimeout); err != nil {
			return err
		}
		return errNoAddress
	}
	out, in := newConns(h, remote, via)
	h.dialled.Add(1)
	remote.accepted.Add(1)
	if via != nil {
		via.relayedConns.Add(1)
		via.mu.Lock()
		via.circuits[out] = struct{}{}
		via.mu.Unlock()
	}
	remote.add(in)
	h.add(out)
	remote.identify(in)
	h.identify(out)
	return nil
}

func (h *Host) add(c *conn) {
	h.emitting.Lock()
	defer h.emitting.Unlock()
	p := c.remote.id
	h.mu.Lock()
	before := connectedness(h.conns[p])
	h.conns[p] = append(h.conns[p], c)
	after := connectedness(h.conns[p])
	h.mu.Unlock()
	h.announce(p, before, after)
}

func (h *Host) remove(c *conn) {
	h.emitting.Lock()
	defer h.emitting.Unlock()
	p := c.remote.id
	h.mu.Lock()
	before := connectedness(h.conns[p])
	h.conns[p] = slices.DeleteFunc(h.conns[p], func(o *conn) bool { return o == c })
	after := connectedness(h.conns[p])
	if len(h.conns[p]) == 0 {
		delete(h.conns, p)
	}
	h.mu.Unlock()
	h.announce(p, before, after)
}

// announce emits what has changed. The caller holds emitting.
func (h *Host) announce(p peer.ID, before, after network.Connectedness) {
	if before == after {
		return
	}
	_ = h.connectedness.Emit(event.EvtPeerConnectednessChanged{Peer: p, Connectedness: after})
	if slices.ContainsFunc(h.relays, func(r peer.AddrInfo) bool { return r.ID == p }) {
		_ = h.moved.Emit(event.EvtLocalAddressesUpdated{})
	}
}

// identify tells the host what the other end of a connection can do.
func (h *Host) identify(c *conn) {
	can := c.remote.protocols()
	_ = h.peers.SetProtocols(c.remote.id, can...)
	h.peers.AddAddrs(c.remote.id, c.remote.Addrs(), peerstore.RecentlyConnectedAddrTTL)
	h.emitting.Lock()
	defer h.emitting.Unlock()
	_ = h.identified.Emit(event.EvtPeerIdentificationCompleted{Peer: c.remote.id, Conn: c, Protocols: can})
}

// NewStream implements host.Host.
func (h *Host) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if h.connectednessTo(p) == network.NotConnected {
		if err := h.Connect(ctx, peer.AddrInfo{ID: p}); err != nil {
			return nil, err
		}
	}
	var best *conn
	for _, c := range h.connsTo(p) {
		if best == nil || best.via != nil && c.via == nil {
			best = c
		}
	}
	if best == nil {
		return nil, network.ErrNoConn
	}
	if allowed, _ := network.GetAllowLimitedConn(ctx); best.via != nil && !allowed {
		return nil, network.ErrLimitedConn
	}
	can := best.remote.protocols()
	for _, id := range ids {
		if slices.Contains(can, id) {
			return best.open(id)
		}
	}
	if err := sleep(ctx, 2*h.delay(best.remote, best.via)); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%v speaks none of %v", p, ids)
}

// closeIdle closes the connections that the host opened and does not use.
func (h *Host) closeIdle(now time.Time) {
	h.mu.Lock()
	using := make(map[*Host]bool)
	for _, some := range h.conns {
		for _, c := range some {
			using[c.via] = true
		}
	}
	h.mu.Unlock()
	for _, c := range h.all() {
		if c.dialler && now.Sub(c.opened) > idleGrace && !using[c.remote] &&
			!h.keeps.IsProtected(c.remote.id, "") && !c.used(h.net.background) {
			go c.Close()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
