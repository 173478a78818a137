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
	// maxKnown is how many those may have together whom the site knows; when there are
	// more, the account with the most loses one: the oldest of its peer with the most.
	maxKnown = 80
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
	account func(identity.ID) string // "" for a stranger
	conns   connmgr.ConnManager
	all     bool                        // everybody has a place: a relay's own limits hold
	vouch   func(relay, caller peer.ID) // tells a relay whom the site knows

	mu    sync.Mutex
	calls []network.Conn // by others, in the order in which they came
}

var _ connmgr.ConnectionGater = (*places)(nil)

func newPlaces(account func(identity.ID) string, conns connmgr.ConnManager, all bool) *places {
	if account == nil {
		account = func(identity.ID) string { return "" }
	}
	return &places{account: account, conns: conns, all: all, vouch: func(peer.ID, peer.ID) {}}
}

func (*places) InterceptPeerDial(peer.ID) bool                                           { return true }
func (*places) InterceptAddrDial(peer.ID, ma.Multiaddr) bool                             { return true }
func (*places) InterceptAccept(network.ConnMultiaddrs) bool                              { return true }
func (*places) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool { return true }

// InterceptUpgraded is asked when a connection is whole and its peer proved.
func (p *places) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	if p.all || c.Stat().Direction != network.DirInbound {
		p.keep(c.RemotePeer())
		return true, 0
	}
	if p.keep(c.RemotePeer()) != "" {
		p.known(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(slices.DeleteFunc(p.calls, network.Conn.IsClosed), c)
	of := make(map[string][]network.Conn) // by account; who was known may be a stranger now
	known, most := 0, ""
	for _, c := range p.calls {
		account := p.keep(c.RemotePeer())
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
	if len(of[""]) > maxStrangers {
		p.end(of[""][0])
	}
	if known > maxKnown {
		p.end(oldestOfMost(of[most]))
	}
	return true, 0
}

// oldestOfMost is the oldest connection of the peer that has the most of these. They are in
// the order in which they came.
func oldestOfMost(all []network.Conn) (out network.Conn) {
	of := make(map[peer.ID]int)
	for _, c := range all {
		of[c.RemotePeer()]++
	}
	for _, c := range all {
		if out == nil || of[c.RemotePeer()] > of[out.RemotePeer()] {
			out = c
		}
	}
	return out
}

// end closes a connection. It is called with mu held.
func (p *places) end(c network.Conn) {
	p.calls = slices.DeleteFunc(p.calls, func(have network.Conn) bool { return have == c })
	go c.Close()
}

// keep names the account of a peer, "" for a stranger, and has its connections stay if it
// has one.
func (p *places) keep(who peer.ID) (account string) {
	if id, err := idOf(who); err == nil {
		account = p.account(id)
	}
	if account == "" {
		p.conns.Unprotect(who, keptTag)
	} else {
		p.conns.Protect(who, keptTag)
	}
	return account
}

// admit has the connections stay of a peer that was a stranger when this one began.
func (p *places) admit(c network.Conn) {
	if !p.conns.IsProtected(c.RemotePeer(), keptTag) {
		p.conns.Protect(c.RemotePeer(), keptTag)
		p.known(c)
	}
}

// known tells the relay of a connection that its peer is known here.
func (p *places) known(c network.Conn) {
	if relay := relayOf(c.RemoteMultiaddr()); relay != "" && c.Stat().Direction == network.DirInbound {
		go p.vouch(relay, c.RemotePeer())
	}
}

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
