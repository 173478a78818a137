package dht

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	maxAddresses = 12  // of a peer
	maxRelayed   = 4   // of those
	maxAddress   = 128 // bytes, as in a record
)

// direct reports whether an address leads to its peer without a relay.
func direct(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err != nil
}

// selectAddrs selects the addresses to announce of a peer with many: some through relays,
// then direct ones, public before local.
func selectAddrs(all []ma.Multiaddr) (some []ma.Multiaddr) {
	relayed := 0
	for _, a := range all {
		if !direct(a) && relayed < maxRelayed && isAnnounceable(a) {
			relayed++
			some = append(some, a)
		}
	}
	near := slices.SortedStableFunc(slices.Values(all), func(a, b ma.Multiaddr) int { return cmp.Compare(reachRank(a), reachRank(b)) })
	for _, a := range near {
		if direct(a) && len(some) < maxAddresses && isAnnounceable(a) {
			some = append(some, a)
		}
	}
	return some
}

func isAnnounceable(a ma.Multiaddr) bool { return len(a) > 0 && len(a.Bytes()) <= maxAddress }

// reachRank is 0 for a public address, and more for others.
func reachRank(a ma.Multiaddr) int {
	switch {
	case manet.IsIPLoopback(a):
		return 2
	case manet.IsPrivateAddr(a):
		return 1
	default:
		return 0
	}
}

// directIPs returns the remote IP addresses of direct connections.
func directIPs(all []network.Conn) (at []netip.Addr) {
	for _, c := range all {
		ip, err := manet.ToIP(c.RemoteMultiaddr())
		if err != nil || !direct(c.RemoteMultiaddr()) {
			continue
		}
		if a, ok := netip.AddrFromSlice(ip); ok && !slices.Contains(at, a.Unmap()) {
			at = append(at, a.Unmap())
		}
	}
	return at
}
