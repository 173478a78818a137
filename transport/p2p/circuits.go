package p2p

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
)

const (
	maxReservations          = 1024
	maxReservationsPerPrefix = 64 // many homes share one address
	reservationTTL           = time.Hour

	circuitTime  = 30 * time.Minute
	circuitBytes = 16 << 20 // each way

	// openTimeout bounds how long a circuit may take to be open, and its caller to be told.
	openTimeout = 3 * relayTimeout

	maxHopRequest = 4 << 10 // bytes of a request, as in the library
)

// Limits of circuits. Where there are two, the second is for strangers. A caller that opens
// more to one site than it may loses the least recently used. The reserve is for known
// callers that find no room in the rest. A site names its known callers, so the reserve counts by
// the sites' networks. A site that names its own keys uses up its network's share, and of the rest
// no more than strangers may.
const (
	relayCircuits, relayReserve        = 640, 256 // each may hold 512 KiB that nobody reads
	siteCircuits, siteStranger         = 64, 40
	prefixCircuits, prefixReserve      = 96, 32
	keyCircuits                        = 64 // a client that lists sites asks many for their cards
	prefixToSite, prefixToSiteStranger = 32, 8
	keyToSite, keyToSiteStranger       = 16, 4
	maxCallers                         = 64 // known callers of a site
)

// circuits wraps the host of the library's relay, with limits that the library lacks. The library
// counts an unanswered circuit in full for a minute and a half, and lets one key take all circuits
// of a site.
type circuits struct {
	host.Host
	allow func(identity.ID) bool // may have a reservation; nil for all

	held                         quota.Quota
	keyOften, prefixOften, often quota.RateLimiter // strangers: to a site by a key and by a prefix, and by a prefix to all

	mu           sync.Mutex
	reservations map[peer.ID]*reservation
	open         map[route][]*openCircuit // oldest first
}

// route is a caller and a site.
type route struct{ from, to peer.ID }

// reservation is a site's at a relay.
type reservation struct {
	prefix  netip.Prefix
	until   time.Time
	active  bool      // and counted; otherwise the callers are kept for the site's return
	callers []peer.ID // that the site knows
}

// Groups of limits, beside whole keys and prefixes. The group of all circuits without the
// reserve is nil; those of all reservations have no prefix.
type (
	toSite     struct{ to peer.ID }
	reserveOf  struct{ to netip.Prefix }
	prefixPair struct {
		from netip.Prefix
		to   peer.ID
	}
	reservationsFrom struct{ prefix netip.Prefix }
	inactiveFrom     struct{ prefix netip.Prefix }
	callerReports    struct{ site peer.ID }
)

// newCircuits returns circuits without a reservation. allow may be nil.
func newCircuits(h host.Host, allow func(identity.ID) bool) *circuits {
	return &circuits{
		Host: h, allow: allow,
		keyOften:     quota.RateLimiter{Rate: quota.Rate{PerSecond: 1, Burst: 8}},
		prefixOften:  quota.RateLimiter{Rate: quota.Rate{PerSecond: 1, Burst: 16}},
		often:        quota.RateLimiter{Rate: quota.Rate{PerSecond: 20, Burst: 256}},
		reservations: make(map[peer.ID]*reservation), open: make(map[route][]*openCircuit),
	}
}

// start follows disconnections, and serves callersProtocol.
func (c *circuits) start() {
	c.Network().Notify(&network.NotifyBundle{DisconnectedF: func(n network.Network, conn network.Conn) {
		if n.Connectedness(conn.RemotePeer()) != network.Connected {
			c.deactivate(conn.RemotePeer())
		}
	}})
	c.Host.SetStreamHandler(callersProtocol, c.receiveCaller)
}

// SetStreamHandler makes the library handle only the requests that admitRequest lets through.
func (c *circuits) SetStreamHandler(id protocol.ID, handle network.StreamHandler) {
	c.Host.SetStreamHandler(id, func(s network.Stream) {
		if g := c.admitRequest(s); g != nil {
			handle(g)
		}
	})
}

// admitRequest reads a stream's request and returns the stream for the library, or nil if it
// was refused.
func (c *circuits) admitRequest(s network.Stream) network.Stream {
	var (
		request bytes.Buffer
		m       pb.HopMessage
	)
	s.SetReadDeadline(time.Now().Add(relayTimeout))
	s.SetWriteDeadline(time.Now().Add(openTimeout))
	r := util.NewDelimitedReader(io.TeeReader(s, &request), maxHopRequest)
	defer r.Close()
	if err := r.ReadMsg(&m); err != nil {
		s.Reset()
		return nil
	}
	s.SetReadDeadline(time.Time{})
	who, from := s.Conn().RemotePeer(), quota.PrefixOf(s.Conn().RemoteMultiaddr())
	first := &hopStream{Stream: s, request: request.Bytes()}
	switch m.GetType() {
	case pb.HopMessage_RESERVE:
		if c.allow != nil && !c.isAllowed(who) {
			refuse(s, pb.Status_PERMISSION_DENIED)
			return nil
		}
		if !c.reserve(who, from) {
			refuse(s, pb.Status_RESERVATION_REFUSED)
			return nil
		}
		if c.Network().Connectedness(who) != network.Connected { // it has disconnected meanwhile
			c.deactivate(who)
		}
	case pb.HopMessage_CONNECT:
		to, err := util.PeerToPeerInfoV2(m.GetPeer())
		if err != nil {
			break // the library says so
		}
		if g := c.admitCircuit(first, route{who, to.ID}, from); g != nil {
			return g
		}
		refuse(s, pb.Status_RESOURCE_LIMIT_EXCEEDED)
		return nil
	}
	return first
}

func refuse(s network.Stream, why pb.Status) {
	if util.NewDelimitedWriter(s).WriteMsg(&pb.HopMessage{Type: pb.HopMessage_STATUS.Enum(), Status: why.Enum()}) != nil {
		s.Reset()
		return
	}
	s.Close()
}

// NewStream opens a stream to a site, which has to answer within relayTimeout.
func (c *circuits) NewStream(ctx context.Context, to peer.ID, ids ...protocol.ID) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	s, err := c.Host.NewStream(ctx, to, ids...)
	if err != nil {
		return nil, err
	}
	return stopStream{s}, nil
}

// isAllowed reports whether the relay's owner has listed a peer.
func (c *circuits) isAllowed(who peer.ID) bool {
	id, err := idOf(who)
	return c.allow != nil && err == nil && c.allow(id)
}

// reserve counts a peer's reservation, or renews it. It returns false if there is no slot.
func (c *circuits) reserve(who peer.ID, from netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, now := c.reservations[who], time.Now()
	if p == nil || !p.active {
		if !c.takeOrExpire(now, reservationLimits(from, true)) {
			return false
		}
		if p = c.reservations[who]; p == nil {
			p = new(reservation)
		} else {
			c.held.Release(reservationLimits(p.prefix, false)...)
		}
		p.prefix, p.active = from, true
		c.reservations[who] = p
	}
	p.until = now.Add(reservationTTL)
	return true
}

// reservationLimits returns the limits of reservations, or those of reservations kept for sites
// that are away. These are separate, because a peer with ever new keys would evict them all.
func reservationLimits(from netip.Prefix, here bool) []quota.Limit {
	if !here {
		return []quota.Limit{{Group: inactiveFrom{from}, Most: maxReservationsPerPrefix}, {Group: inactiveFrom{}, Most: maxReservations}}
	}
	return []quota.Limit{{Group: reservationsFrom{from}, Most: maxReservationsPerPrefix}, {Group: reservationsFrom{}, Most: maxReservations}}
}

// takeOrExpire takes from limits, after deleting expired reservations if need be. The caller
// holds mu.
func (c *circuits) takeOrExpire(now time.Time, limits []quota.Limit) bool {
	if c.held.Take(limits...) {
		return true
	}
	c.expire(now)
	return c.held.Take(limits...)
}

// expire deletes reservations that were not renewed. The caller holds mu.
func (c *circuits) expire(now time.Time) {
	for who, p := range c.reservations {
		if p.until.Before(now) {
			c.held.Release(reservationLimits(p.prefix, p.active)...)
			delete(c.reservations, who)
		}
	}
}

// deactivate ends the reservation of a peer that has disconnected. Its callers are kept until
// the reservation expires.
func (c *circuits) deactivate(who peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.reservations[who]
	if p == nil || !p.active {
		return
	}
	c.held.Release(reservationLimits(p.prefix, true)...)
	delete(c.reservations, who)
	if p.active = false; len(p.callers) > 0 && c.takeOrExpire(time.Now(), reservationLimits(p.prefix, false)) {
		c.reservations[who] = p
	}
}

// admitCircuit counts a circuit, or returns nil where there is no room for it.
func (c *circuits) admitCircuit(h *hopStream, who route, from netip.Prefix) *openCircuit {
	c.mu.Lock()
	defer c.mu.Unlock()
	site := c.reservations[who.to]
	known := site != nil && slices.Contains(site.callers, who.from) || c.isAllowed(who.from)
	if !known && !(c.keyOften.Allow(who) && c.prefixOften.Allow(prefixPair{from, who.to}) && c.often.Allow(from)) {
		return nil
	}
	most := func(group any, ifKnown, ifNot int) quota.Limit {
		if known {
			return quota.Limit{Group: group, Most: ifKnown}
		}
		return quota.Limit{Group: group, Most: ifNot}
	}
	own := most(who, keyToSite, keyToSiteStranger)
	to := []quota.Limit{
		most(toSite{who.to}, siteCircuits, siteStranger),
		most(prefixPair{from, who.to}, prefixToSite, prefixToSiteStranger),
		{Group: who.from, Most: keyCircuits},
	}
	g := &openCircuit{hopStream: h, circuits: c, who: who, limits: append(to, quota.Limit{Group: from, Most: prefixCircuits}, quota.Limit{Most: relayCircuits})}
	if all := c.open[who]; len(all) >= own.Most { // a killed caller leaves some
		quietest := slices.MinFunc(all, func(a, b *openCircuit) int { return cmp.Compare(a.lastRead.Load(), b.lastRead.Load()) })
		c.removeCircuit(quietest)
		go quietest.hopStream.Stream.Reset()
	}
	if !c.held.Take(g.limits...) {
		if !known || site == nil {
			return nil
		}
		g.limits = append(to, quota.Limit{Group: reserveOf{site.prefix}, Most: prefixReserve}, quota.Limit{Group: reserveOf{}, Most: relayReserve})
		if !c.held.Take(g.limits...) {
			return nil
		}
	}
	g.lastRead.Store(time.Now().UnixNano())
	c.open[who] = append(c.open[who], g)
	return g
}

// removeCircuit stops counting a circuit, once. The caller holds mu.
func (c *circuits) removeCircuit(g *openCircuit) {
	all := c.open[g.who]
	i := slices.Index(all, g)
	if i < 0 {
		return
	}
	if c.open[g.who] = slices.Delete(all, i, i+1); len(c.open[g.who]) == 0 {
		delete(c.open, g.who)
	}
	c.held.Release(g.limits...)
}

// hopStream is a caller's stream whose request was read already. It ignores the library's
// deadlines until the circuit is open.
type hopStream struct {
	network.Stream
	request []byte
}

func (h *hopStream) Read(b []byte) (int, error) {
	if len(h.request) > 0 {
		n := copy(b, h.request)
		h.request = h.request[n:]
		return n, nil
	}
	return h.Stream.Read(b)
}

func (*hopStream) SetReadDeadline(time.Time) error  { return nil }
func (*hopStream) SetWriteDeadline(time.Time) error { return nil }

// openCircuit is the caller's stream of a circuit that is counted.
type openCircuit struct {
	*hopStream
	circuits *circuits
	who      route
	limits   []quota.Limit
	lastRead atomic.Int64 // when the caller sent something last, in Unix nanoseconds
}

func (g *openCircuit) Read(b []byte) (int, error) {
	n, err := g.hopStream.Read(b)
	g.lastRead.Store(time.Now().UnixNano())
	return n, err
}

func (g *openCircuit) Close() error { g.remove(); return g.hopStream.Close() }
func (g *openCircuit) Reset() error { g.remove(); return g.hopStream.Reset() }
func (g *openCircuit) ResetWithError(code network.StreamErrorCode) error {
	g.remove()
	return g.hopStream.ResetWithError(code)
}

func (g *openCircuit) remove() {
	g.circuits.mu.Lock()
	defer g.circuits.mu.Unlock()
	g.circuits.removeCircuit(g)
}

// stopStream is the stream of a circuit to its site.
type stopStream struct{ network.Stream }

// SetDeadline gives the site relayTimeout where the library gives it a minute to answer.
func (s stopStream) SetDeadline(t time.Time) error {
	if d := time.Until(t); d > relayTimeout && d <= circuitrelay.HandshakeTimeout {
		t = time.Now().Add(relayTimeout)
	}
	return s.Stream.SetDeadline(t)
}
