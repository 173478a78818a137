package p2p

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	bhost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// punchTimeout bounds how long an attempt waits for the other end. That may be gone and
// calling again: a command line, say, whose key is the same each time. The next attempt goes
// to where it is now.
const punchTimeout = 3 * time.Second

// startHolePunching makes the host punch holes to peers that call it through a relay. Both
// ends need an observed address. The library tries once, at the call, too early for an end
// that has just started. So this tries again once both ends support it, and when a direct
// connection has closed.
func (h *Host) startHolePunching(basic *bhost.BasicHost, observed bhost.ObservedAddrsManager) error {
	own := func() []ma.Multiaddr {
		all := ma.Unique(append(basic.AllAddrs(), observed.Addrs(1)...))
		return slices.DeleteFunc(all, func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
	}
	service, err := holepunch.NewService(basic, basic.IDService(), own, holepunch.WithTracer(h.punched), holepunch.DirectDialTimeout(punchTimeout))
	if err != nil {
		return err
	}
	h.onClose(service.Close)
	ready, err := h.EventBus().Subscribe([]any{new(event.EvtPeerProtocolsUpdated), new(event.EvtLocalProtocolsUpdated), new(event.EvtPeerConnectednessChanged)})
	if err != nil {
		return err
	}
	h.onClose(ready.Close)
	again := func(p peer.ID) {
		theirs, err := h.Peerstore().SupportsProtocols(p, holepunch.Protocol)
		if err != nil || len(theirs) == 0 || !h.isRelayedCaller(p) || !slices.Contains(h.Mux().Protocols(), holepunch.Protocol) {
			return
		}
		go func() { _ = service.DirectConnect(p) }() // it ends with the service, and tells h.punched
	}
	go func() { // it ends with ready
		for e := range ready.Out() {
			switch e := e.(type) {
			case event.EvtPeerProtocolsUpdated:
				if slices.Contains(e.Added, holepunch.Protocol) {
					again(e.Peer)
				}
			case event.EvtPeerConnectednessChanged:
				if e.Connectedness == network.Limited { // a hole has closed
					again(e.Peer)
				}
			case event.EvtLocalProtocolsUpdated:
				if slices.Contains(e.Added, holepunch.Protocol) {
					for _, p := range h.Network().Peers() {
						again(p)
					}
				}
			}
		}
	}()
	return nil
}

// isRelayedCaller reports whether a peer has called and is connected through relays only.
func (h *Host) isRelayedCaller(p peer.ID) bool {
	return h.Network().Connectedness(p) == network.Limited && slices.ContainsFunc(h.Network().ConnsToPeer(p), func(c network.Conn) bool {
		return c.Stat().Direction == network.DirInbound
	})
}
