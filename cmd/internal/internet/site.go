package internet

import (
	"slices"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/transport/p2p"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// JoinSite joins as a site's configuration says. Of o, it sets where to listen and the
// relays; showCard, newer and files are those of Site. The error may be a state.Mistake.
func JoinSite(cfg config.Internet, o p2p.Options, showCard func() card.Card, newer func(*discovery.Signed), files func(card.FileID) []byte) (*Network, error) {
	listen, err := p2p.ListenAddrs(cfg.Listen)
	if err != nil {
		return nil, state.Mistakef("internet: %w", err)
	}
	relays, err := p2p.ParsePeers(cfg.Relays)
	if err != nil {
		return nil, state.Mistakef("internet: relays: %w", err)
	}
	o.Listen, o.Relays = listen, relays
	o.PortMap = cfg.PortMap && !slices.ContainsFunc(listen, isLoopback)
	all := Options{P2P: o, Relays: relays, Server: cfg.Server}
	if cfg.Realm != "" {
		realm, err := discovery.ParseRealm(cfg.Realm)
		if err != nil {
			return nil, state.Mistakef("internet: %w", err)
		}
		all.Site = &Site{Realm: Realm{Realm: realm, IPFS: cfg.IPFS}, Card: showCard, Newer: newer, Files: files}
	}
	return Join(all)
}

// isLoopback reports whether an address is reached from this machine only.
func isLoopback(address string) bool {
	a, err := multiaddr.NewMultiaddr(address)
	return err == nil && manet.IsIPLoopback(a)
}

// Listening returns the addresses at which the host listens itself, without relays, and the
// protocols that it speaks now.
func (n *Network) Listening() (addresses, protocols []string) {
	for _, p := range n.Mux().Protocols() {
		protocols = append(protocols, string(p))
	}
	slices.Sort(protocols)
	for _, a := range n.Network().ListenAddresses() {
		if !p2p.IsRelayed(a) {
			addresses = append(addresses, a.String())
		}
	}
	return addresses, protocols
}
