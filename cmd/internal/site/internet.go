package site

import (
	"context"
	"net"
	"slices"

	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	"agentsite/transport/p2p"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// openInternet has a site take part as its configuration says; nil without that section.
func openInternet(cfg *config.Internet, o p2p.Options, there *presence) (*internet.Network, error) {
	if cfg == nil {
		return nil, nil
	}
	listen, err := p2p.ListenAddrs(cfg.Listen)
	if err != nil {
		return nil, state.Mistakef("internet: %w", err)
	}
	relays, err := p2p.ParsePeers(cfg.Relays)
	if err != nil {
		return nil, state.Mistakef("internet: relays: %w", err)
	}
	o.Listen, o.Relays = listen, relays
	o.PortMap = cfg.PortMap && !slices.ContainsFunc(listen, onlyHere)
	all := internet.Options{P2P: o, Relays: relays, Server: cfg.Server}
	if cfg.Realm != "" {
		realm, err := discovery.ParseRealm(cfg.Realm)
		if err != nil {
			return nil, state.Mistakef("internet: %w", err)
		}
		all.Site = &internet.Site{Realm: internet.Realm{Realm: realm, IPFS: cfg.IPFS}, Card: there.card, Newer: there.newer}
	}
	return internet.Join(all)
}

// onlyHere reports whether an address leads nowhere but to this machine.
func onlyHere(at string) bool {
	a, err := multiaddr.NewMultiaddr(at)
	return err == nil && manet.IsIPLoopback(a)
}

// places is where a site may be reached: by HTTPS and from anywhere.
func places(at net.Addr, id identity.ID, far *internet.Network) []string {
	all := reachable(at, id)
	if far != nil {
		all = append(all, far.Addresses()...)
	}
	return all
}

// claimAddresses is where a site is claimed: the first places, without the name that whoever
// knows its key looks for anyway, and its first relay.
func claimAddresses(at net.Addr, id identity.ID, far *internet.Network) []string {
	near := reachable(at, id)
	if len(near) > 1 {
		near = near[:len(near)-1]
	}
	if far != nil && far.RelayAddress() != "" {
		near = append(near, far.RelayAddress())
	}
	return near
}

// carriers are where the host listens, with the protocols that it speaks now.
func carriers(far *internet.Network) (all []owner.Carrier) {
	if far == nil {
		return nil
	}
	var protocols []string
	for _, p := range far.Mux().Protocols() {
		protocols = append(protocols, string(p))
	}
	slices.Sort(protocols)
	for _, a := range far.Network().ListenAddresses() {
		if !p2p.IsRelayed(a) {
			all = append(all, owner.Carrier{Kind: owner.P2PCarrier, Address: a.String(), Routes: protocols})
		}
	}
	return all
}

// finder finds the other sites of a site's realm for its owner; nil without a realm.
func finder(there *presence) owner.Finder {
	if there.realm == nil {
		return nil
	}
	return func(ctx context.Context, capability string) (all []owner.Found, err error) {
		if capability == "" {
			for _, s := range there.realm.Sites() {
				all = append(all, owner.NewFound(s.Signed))
			}
			return all, nil
		}
		err = there.far.Find(ctx, capability, func(r *discovery.Signed) { all = append(all, owner.NewFound(r)) })
		return all, err
	}
}
