package site

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/node"
	"agentsite/node/identity"
	"agentsite/transport/owner"
	"agentsite/transport/web"
)

// nearbyURL returns the URL at which the site is announced on its own network, "" where its
// HTTPS listener, nil for none, is reached from this machine only.
func nearbyURL(secure net.Listener, id identity.ID) string {
	if secure == nil {
		return ""
	}
	at, err := netip.ParseAddrPort(secure.Addr().String())
	if err != nil || at.Addr().IsLoopback() {
		return ""
	}
	return "https://" + net.JoinHostPort(discovery.HostName(id), fmt.Sprint(at.Port())) + "/mcp"
}

// offeredPoints returns the points of all devices, as a record has them.
func offeredPoints(all []node.Device) (points []announce.Point) {
	for _, t := range all {
		for _, p := range t.Description.Points {
			points = append(points, announce.Point{Kind: string(p.Kind), Name: p.Name})
		}
	}
	return points
}

// endpoints returns where the site may be reached: by HTTPS, and through the global network.
// Either may be nil.
func endpoints(secure net.Listener, id identity.ID, far *internet.Network) (all []string) {
	if secure != nil {
		all = web.Endpoints(secure.Addr(), discovery.HostName(id))
	}
	if far != nil {
		all = append(all, far.Addresses()...)
	}
	return all
}

// claimAddresses returns where the site is claimed: the HTTPS endpoints, without the name that
// whoever knows its key looks for anyway, and its first relay.
func claimAddresses(secure net.Listener, id identity.ID, far *internet.Network) []string {
	near := endpoints(secure, id, nil)
	if len(near) > 1 {
		near = near[:len(near)-1]
	}
	if far != nil && far.RelayAddress() != "" {
		near = append(near, far.RelayAddress())
	}
	return near
}

// peerCarriers returns where the host listens for peers, with the protocols that it speaks now.
func peerCarriers(far *internet.Network) (all []owner.Carrier) {
	addresses, protocols := far.Listening()
	for _, a := range addresses {
		all = append(all, owner.Carrier{Kind: owner.P2PCarrier, Address: a, Routes: protocols})
	}
	return all
}

// finder finds the other sites of the site's realm for its owner.
func finder(far *internet.Network) owner.Finder {
	return func(ctx context.Context, capability string) (all []owner.Found, err error) {
		records, err := far.Search(ctx, capability)
		for _, r := range records {
			all = append(all, owner.NewFound(r))
		}
		return all, err
	}
}
