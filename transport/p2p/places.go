package p2p

import (
	"slices"
	"sync"

	"agentsite/node/identity"

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
	// maxStrange is how many streams each of these may have, each of 256 KiB: together
	// they take less than all that newLimits allows.
	maxStrange = 10
)

// keptTag is why a peer's connections are not ended when there are many.
const keptTag = "known"

// places are those for connections. Who has proved a key that the site knows always gets
// one. Of strangers, who comes last takes the place of who came first: so none is kept
// out by others who only sit there.
type places struct {
	known func(identity.ID) bool
	conns connmgr.ConnManager
	all   bool // everybody has a place: a relay's own limits hold

	mu        sync.Mutex
	strangers []network.Conn // in the order in which they came
}

var _ connmgr.ConnectionGater = (*places)(nil)

func newPlaces(known func(identity.ID) bool, conns connmgr.ConnManager, all bool) *places {
	if known == nil {
		known = func(identity.ID) bool { return false }
	}
	return &places{known: known, conns: conns, all: all}
}

func (*places) InterceptPeerDial(peer.ID) bool                                           { return true }
func (*places) InterceptAddrDial(peer.ID, ma.Multiaddr) bool                             { return true }
func (*places) InterceptAccept(network.ConnMultiaddrs) bool                              { return true }
func (*places) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool { return true }

// InterceptUpgraded is asked when a connection is whole and its peer proved.
func (p *places) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	if p.keep(c.RemotePeer()) || p.all || c.Stat().Direction != network.DirInbound {
		return true, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strangers = slices.DeleteFunc(p.strangers, func(s network.Conn) bool {
		return s.IsClosed() || p.conns.IsProtected(s.RemotePeer(), "")
	})
	p.strangers = append(p.strangers, c)
	if len(p.strangers) > maxStrangers {
		first := p.strangers[0]
		p.strangers = p.strangers[1:]
		go first.Close()
	}
	return true, 0
}

// keep reports whether a peer is known, and has its connections stay if so.
func (p *places) keep(who peer.ID) bool {
	id, err := idOf(who)
	if err != nil || !p.known(id) {
		p.conns.Unprotect(who, keptTag)
		return false
	}
	p.conns.Protect(who, keptTag)
	return true
}

// admit has the connections stay of who was a stranger when they began.
func (p *places) admit(who peer.ID) { p.conns.Protect(who, keptTag) }

// guarded is a network in which a stranger has few streams, of whatever kind: each takes
// memory that others may need, before it has said what it is for.
type guarded struct {
	*swarm.Swarm
	places *places
}

func (g guarded) SetStreamHandler(handle network.StreamHandler) {
	g.Swarm.SetStreamHandler(func(s network.Stream) {
		if c := s.Conn(); g.places.strange(c) && len(c.GetStreams()) > maxStrange {
			s.Reset()
			c.Close()
			return
		}
		handle(s)
	})
}

// strange reports whether a connection is one of a stranger's.
func (p *places) strange(c network.Conn) bool {
	return !p.all && c.Stat().Direction == network.DirInbound && !p.conns.IsProtected(c.RemotePeer(), "")
}

// nobodyElse lets a host call and not be called.
type nobodyElse struct{}

func (nobodyElse) InterceptPeerDial(peer.ID) bool               { return true }
func (nobodyElse) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (nobodyElse) InterceptAccept(network.ConnMultiaddrs) bool  { return false }
func (nobodyElse) InterceptSecured(way network.Direction, _ peer.ID, _ network.ConnMultiaddrs) bool {
	return way == network.DirOutbound
}
func (nobodyElse) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
