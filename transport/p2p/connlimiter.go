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
	// maxStrangers is how many connections strangers may have here at a time.
	maxStrangers = 16
	// maxKnown is how many those may have together whom the site knows; when there are
	// more, the account with the most loses one: the oldest of its peer with the most.
	maxKnown = 80
	// maxOfKey is how many a peer may have, and maxOfStranger a stranger. From someOfKey on
	// the others are looked at: those of a client that was killed, by QUIC, are there for
	// half a minute, and its next call is not to wait for them.
	maxPerPeer, maxPerStranger, probeFrom = 16, 4, 4
	// maxOfPrefix is how many those of one network may have at a relay that have no place
	// and no circuit there. It leaves room for handshakes in what newLimits allows them.
	maxPerPrefix = 192
	// relayStrangers is how many of those a relay has of all networks. Each takes 80 kB, of
	// which Go keeps some after the connection, and reconnects quickly.
	maxRelayStrangers = 256
	// maxStrange is how many streams each of a stranger's connections may have, each of
	// 256 KiB: together they take less than all that newLimits allows. At a relay all
	// those of one network may have prefixStreams, as much as an eighth of it.
	maxStreamsPerConn   = 10
	maxStreamsPerPrefix = 256
)

// keptTag is why a peer's connections are not ended when there are many. The others are the
// library's, for those that have a place or a circuit at a relay.
const (
	knownTag       = "known"
	reservationTag = "relay-reservation"
	hopTag         = "relay-v2-hop"
)

// places are those for connections. Who has proved a key that the site knows always gets
// one. Of strangers, a newcomer takes the place of one of the network that has the most,
// and there of the key that has the most, the oldest: so none is kept out by others who
// only sit there, and who has few keeps them. All that come over one relay count as one
// network.
type connLimiter struct {
	account      func(identity.ID) string // "" for a stranger
	conns        connmgr.ConnManager
	relay        bool                             // everybody has a place, within what a network may have
	reportCaller func(relay, caller peer.ID) bool // tells a relay whom the site knows

	releaser memoryReleaser

	mu       sync.Mutex
	inbound  []inboundConn // by others, in the order in which they came
	reported []route       // callers who came through relays that were told of them, the last ones
}

// call is a connection that another has made.
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

// InterceptUpgraded is asked when a connection is whole and its peer proved.
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

// disconnected forgets a connection that has ended, and what it holds.
func (p *connLimiter) disconnected(_ network.Network, c network.Conn) {
	p.mu.Lock()
	p.inbound = slices.DeleteFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c })
	p.mu.Unlock()
	p.releaser.connClosed()
}

// ofKey bounds the connections of one peer. It is called with mu held.
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

// ofPrefix bounds the connections from one network to a relay, and of all strangers. Who has
// a place or a circuit is spared. It is called with mu held.
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

// some are the connections for which something holds, in their order. It is called with mu
// held.
func (p *connLimiter) filter(is func(inboundConn) bool) (some []inboundConn) {
	for _, c := range p.inbound {
		if is(c) {
			some = append(some, c)
		}
	}
	return some
}

// ofAll bounds the connections of strangers to a site, and of all that it knows. It is
// called with mu held.
func (p *connLimiter) limitSite() {
	of := make(map[string][]inboundConn) // by account; who was known may be a stranger now
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

// ofCrowded is a connection from the network that has the most of these: there the oldest of
// the key that has the most.
func evictionCandidate(all []inboundConn) inboundConn {
	from := oldestOfLargest(all, func(c inboundConn) netip.Prefix { return c.from }).from
	return oldestOfLargest(slices.DeleteFunc(all, func(c inboundConn) bool { return c.from != from }), inboundConn.RemotePeer)
}

// oldestOfMost is the oldest connection of the group that has the most of these. They are in
// the order in which they came.
func oldestOfLargest[G comparable](all []inboundConn, group func(inboundConn) G) (out inboundConn) {
	of, most := make(map[G]int), 0
	for _, c := range all {
		of[group(c)]++
		most = max(most, of[group(c)])
	}
	return all[slices.IndexFunc(all, func(c inboundConn) bool { return of[group(c)] == most })]
}

// end closes a connection. It is called with mu held.
func (p *connLimiter) closeConn(c inboundConn) {
	p.inbound = slices.DeleteFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c.Conn })
	go c.Close()
}

// hello is what libp2p says first on each stream, and hears.
const multistreamHeader = "\x13/multistream/1.0.0\n"

// closeIfDead closes a connection whose other end answers nothing. It blocks for seconds at
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

// serves reports whether a peer has a place at this relay, or, if that is asked, a circuit.
// The library says so in tags.
func (p *connLimiter) isRelayClient(who peer.ID, circuits bool) bool {
	info := p.conns.GetTagInfo(who)
	return info != nil && (info.Tags[reservationTag] > 0 || circuits && info.Tags[hopTag] > 0)
}

// keep names the account of a peer, "" for a stranger, and has its connections stay if it
// has one.
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

// admit has the connections stay of a peer that was a stranger when this one began.
func (p *connLimiter) markKnown(c network.Conn) {
	if !p.conns.IsProtected(c.RemotePeer(), knownTag) {
		p.conns.Protect(c.RemotePeer(), knownTag)
		p.reportKnown(c)
	}
}

// known tells the relay of a connection that its peer is known here.
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

// remind tells a relay again whom it was told of, for it may have been started anew, and
// stops where it does not take that. It blocks for seconds then, and after ctx has ended.
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

// guarded is a network in which a stranger has few streams, of whatever kind: each takes
// memory that others may need, before it has said what it is for.
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

// tooMany reports whether a connection has more streams than a stranger's may, or at a
// relay whether those of its network have together. Those that have a place are spared.
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

// nobodyElse lets a host call and not be called.
type outboundOnly struct{}

func (outboundOnly) InterceptPeerDial(peer.ID) bool               { return true }
func (outboundOnly) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (outboundOnly) InterceptAccept(network.ConnMultiaddrs) bool  { return false }
func (outboundOnly) InterceptSecured(way network.Direction, _ peer.ID, _ network.ConnMultiaddrs) bool {
	return way == network.DirOutbound
}
func (outboundOnly) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
