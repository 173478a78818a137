package p2p

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	// maxStrangers bounds the inbound connections of strangers to a site.
	maxStrangers = 16
	// maxKnown bounds those of known peers. Beyond it, the account with the most loses the
	// oldest connection of its peer with the most.
	maxKnown = 80
	// maxPerPeer and maxPerStranger bound the inbound connections of one peer. From probeFrom on the
	// others are probed: QUIC connections of a killed client linger for half a minute, and its next
	// call should not wait for them.
	maxPerPeer, maxPerStranger, probeFrom = 16, 4, 4
	// maxPerPrefix bounds the connections from one network to a relay of peers without a
	// reservation or a circuit. It leaves room for handshakes within newLimits.
	maxPerPrefix = 192
	// maxRelayStrangers bounds those of all networks. Each takes 80 kB, of which Go keeps
	// some after the connection, and reconnects quickly.
	maxRelayStrangers = 256
	// maxStreamsPerConn bounds the streams of each stranger's connection, each of 256 KiB:
	// together they take less than newLimits allows. At a relay maxStreamsPerPrefix bounds
	// those of one network to an eighth of it.
	maxStreamsPerConn   = 10
	maxStreamsPerPrefix = 256
)

// Connection manager tags. The library sets the last two, for peers with a reservation or a
// circuit at this relay.
const (
	knownTag       = "known"
	reservationTag = "relay-reservation"
	hopTag         = "relay-v2-hop"
)

// PublicNameTag protects the sites whose public names this relay serves.
const PublicNameTag = "public-name"

// connLimiter limits inbound connections. A peer with an account always gets one. A stranger
// evicts the oldest connection of the key with the most, in the network with the most. So
// idle strangers block no other, and a peer with few connections keeps them. All peers
// through one relay count as one network.
type connLimiter struct {
	account      func(identity.ID) string // "" for a stranger
	conns        connmgr.ConnManager
	relay        bool                             // admits everybody, within the limits of a network
	reportCaller func(relay, caller peer.ID) bool // tells a relay of a known caller

	releaser memoryReleaser

	mu       sync.Mutex
	inbound  []inboundConn // oldest first
	reported []route       // the last callers that relays were told of
}

// inboundConn is an inbound connection and its network.
type inboundConn struct {
	network.Conn
	from netip.Prefix
}

var _ connmgr.ConnectionGater = (*connLimiter)(nil)

func newConnLimiter(account func(identity.ID) string, conns connmgr.ConnManager, relay bool) *connLimiter {
	if account == nil {
		account = func(identity.ID) string { return "" }
	}
	return &connLimiter{account: account, conns: conns, relay: relay, reportCaller: func(peer.ID, peer.ID) bool { return false }}
}

func (*connLimiter) InterceptPeerDial(peer.ID) bool               { return true }
func (*connLimiter) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (*connLimiter) InterceptAccept(network.ConnMultiaddrs) bool  { return true }
func (*connLimiter) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool {
	return true
}

// InterceptUpgraded registers a connection whose peer is proved, and evicts others.
func (p *connLimiter) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	account := p.protect(c.RemotePeer())
	if c.Stat().Direction != network.DirInbound {
		return true, 0
	}
	if account != "" {
		p.reportKnown(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	newcomer := inboundConn{c, quota.PrefixOf(c.RemoteMultiaddr())}
	p.limitPeer(newcomer, account)
	p.inbound = append(p.inbound, newcomer)
	if p.relay {
		p.limitPrefix(newcomer.from)
	} else {
		p.limitSite()
	}
	return true, 0
}

// disconnected removes a closed connection.
func (p *connLimiter) disconnected(_ network.Network, c network.Conn) {
	p.mu.Lock()
	p.inbound = slices.DeleteFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c })
	p.mu.Unlock()
	p.releaser.connClosed()
}

// limitPeer limits the connections of one peer. The caller holds mu.
func (p *connLimiter) limitPeer(newcomer inboundConn, account string) {
	most := maxPerPeer
	if account == "" && !p.relay && !p.conns.IsProtected(newcomer.RemotePeer(), "") {
		most = maxPerStranger
	}
	own := p.filter(func(c inboundConn) bool { return c.RemotePeer() == newcomer.RemotePeer() })
	if len(own) >= most {
		p.closeConn(own[0])
		own = own[1:]
	}
	if len(own) >= probeFrom {
		for _, c := range own {
			go closeIfDead(c)
		}
	}
}

// limitPrefix limits the connections to a relay from one network, and of all strangers. It
// spares peers with a reservation or a circuit. The caller holds mu.
func (p *connLimiter) limitPrefix(from netip.Prefix) {
	stranger := func(c inboundConn) bool { return !p.isRelayClient(c.RemotePeer(), true) }
	if all := p.filter(func(c inboundConn) bool { return c.from == from }); len(all) > maxPerPrefix {
		if all = slices.DeleteFunc(all, not(stranger)); len(all) > maxPerPrefix {
			p.closeConn(oldestOfLargest(all, inboundConn.RemotePeer))
			return
		}
	}
	if len(p.inbound) > maxRelayStrangers {
		if all := p.filter(stranger); len(all) > maxRelayStrangers {
			p.closeConn(evictionCandidate(all))
		}
	}
}

func not(f func(inboundConn) bool) func(inboundConn) bool {
	return func(c inboundConn) bool { return !f(c) }
}

// filter returns the connections that satisfy is, oldest first. The caller holds mu.
func (p *connLimiter) filter(is func(inboundConn) bool) (some []inboundConn) {
	for _, c := range p.inbound {
		if is(c) {
			some = append(some, c)
		}
	}
	return some
}

// limitSite limits the connections to a site of strangers, and of all known peers. The caller
// holds mu.
func (p *connLimiter) limitSite() {
	of := make(map[string][]inboundConn) // by account; a known peer may be a stranger now
	known, most := 0, ""
	for _, c := range p.inbound {
		account := p.protect(c.RemotePeer())
		if account == "" && p.conns.IsProtected(c.RemotePeer(), "") {
			continue // it is needed for something else
		}
		of[account] = append(of[account], c)
		if account != "" {
			if known++; most == "" || len(of[account]) > len(of[most]) {
				most = account
			}
		}
	}
	if strangers := of[""]; len(strangers) > maxStrangers {
		p.closeConn(evictionCandidate(strangers))
	}
	if known > maxKnown {
		p.closeConn(oldestOfLargest(of[most], inboundConn.RemotePeer))
	}
}

// evictionCandidate returns the oldest connection of the key with the most, in the network
// with the most.
func evictionCandidate(all []inboundConn) inboundConn {
	from := oldestOfLargest(all, func(c inboundConn) netip.Prefix { return c.from }).from
	return oldestOfLargest(slices.DeleteFunc(all, func(c inboundConn) bool { return c.from != from }), inboundConn.RemotePeer)
}

// oldestOfLargest returns the oldest connection of the largest group. all is oldest first.
func oldestOfLargest[G comparable](all []inboundConn, group func(inboundConn) G) (out inboundConn) {
	of, most := make(map[G]int), 0
	for _, c := range all {
		of[group(c)]++
		most = max(most, of[group(c)])
	}
	return all[slices.IndexFunc(all, func(c inboundConn) bool { return of[group(c)] == most })]
}

// closeConn closes a connection without blocking. The caller holds mu.
func (p *connLimiter) closeConn(c inboundConn) {
	p.inbound = slices.DeleteFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c.Conn })
	go c.Close()
}

// multistreamHeader is the first message on each libp2p stream, in both directions.
const multistreamHeader = "\x13/multistream/1.0.0\n"

// closeIfDead closes a connection whose other end does not answer. It blocks for seconds at
// most.
func closeIfDead(c network.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	s, err := c.NewStream(network.WithAllowLimitedConn(ctx, limitedReason))
	if err == nil {
		defer s.Reset()
		s.SetDeadline(time.Now().Add(probeTimeout))
		if _, err = io.WriteString(s, multistreamHeader); err == nil {
			_, err = s.Read(make([]byte, 1))
		}
	}
	if err != nil {
		c.Close()
	}
}

// isRelayClient reports whether a peer has a reservation or a public name at this relay or, with circuits, a
// circuit.
func (p *connLimiter) isRelayClient(who peer.ID, circuits bool) bool {
	if p.conns.IsProtected(who, PublicNameTag) {
		return true
	}
	info := p.conns.GetTagInfo(who)
	return info != nil && (info.Tags[reservationTag] > 0 || circuits && info.Tags[hopTag] > 0)
}

// protect returns the account of a peer, "" for a stranger, and protects its connections if it has
// an account.
func (p *connLimiter) protect(who peer.ID) (account string) {
	if id, err := idOf(who); err == nil {
		account = p.account(id)
	}
	if account == "" {
		p.conns.Unprotect(who, knownTag)
	} else {
		p.conns.Protect(who, knownTag)
	}
	return account
}

// markKnown protects the connections of a peer that was a stranger when this one was made.
func (p *connLimiter) markKnown(c network.Conn) {
	if !p.conns.IsProtected(c.RemotePeer(), knownTag) {
		p.conns.Protect(c.RemotePeer(), knownTag)
		p.reportKnown(c)
	}
}

// reportKnown tells the relay of a connection that its peer is known here.
func (p *connLimiter) reportKnown(c network.Conn) {
	relay := relayOf(c.RemoteMultiaddr())
	if relay == "" || c.Stat().Direction != network.DirInbound {
		return
	}
	who := route{from: c.RemotePeer(), to: relay}
	p.mu.Lock()
	p.reported = append(slices.DeleteFunc(p.reported, func(have route) bool { return have == who }), who)
	p.reported = p.reported[max(0, len(p.reported)-maxCallers):]
	p.mu.Unlock()
	go p.reportCaller(relay, who.from)
}

// resendCallers tells a relay, which may have restarted, its callers again, until it refuses
// one. It may block for seconds, also after ctx has ended.
func (p *connLimiter) resendCallers(ctx context.Context, relay peer.ID) {
	p.mu.Lock()
	told := slices.Clone(p.reported)
	p.mu.Unlock()
	for _, who := range told {
		if ctx.Err() != nil || who.to == relay && !p.reportCaller(relay, who.from) {
			return
		}
	}
}

// streamLimiter is a network that limits the streams of strangers, whatever their protocol: each
// takes memory before it has named its protocol.
type streamLimiter struct {
	*swarm.Swarm
	limiter *connLimiter
}

func (g streamLimiter) SetStreamHandler(handle network.StreamHandler) {
	g.Swarm.SetStreamHandler(func(s network.Stream) {
		if c := s.Conn(); g.limiter.exceedsStreamLimit(c) {
			s.Reset()
			c.Close()
			return
		}
		handle(s)
	})
}

// exceedsStreamLimit reports whether a stranger's connection has too many streams, or at a
// relay its network. It spares peers with a reservation.
func (p *connLimiter) exceedsStreamLimit(c network.Conn) bool {
	if c.Stat().Direction != network.DirInbound || p.conns.IsProtected(c.RemotePeer(), "") {
		return false
	}
	if !p.relay {
		return c.Stat().NumStreams > maxStreamsPerConn
	}
	from, n := quota.PrefixOf(c.RemoteMultiaddr()), 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.inbound {
		if c.from == from {
			n += c.Stat().NumStreams
		}
	}
	if n <= maxStreamsPerPrefix || c.Stat().NumStreams <= 2 || p.isRelayClient(c.RemotePeer(), false) {
		return false
	}
	for _, c := range p.inbound {
		if c.from == from && p.isRelayClient(c.RemotePeer(), false) {
			n -= c.Stat().NumStreams
		}
	}
	return n > maxStreamsPerPrefix
}

// outboundOnly is a gater that refuses inbound connections.
type outboundOnly struct{}

func (outboundOnly) InterceptPeerDial(peer.ID) bool               { return true }
func (outboundOnly) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (outboundOnly) InterceptAccept(network.ConnMultiaddrs) bool  { return false }
func (outboundOnly) InterceptSecured(way network.Direction, _ peer.ID, _ network.ConnMultiaddrs) bool {
	return way == network.DirOutbound
}
func (outboundOnly) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
