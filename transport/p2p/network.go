package p2p

import (
	"log/slog"
	"net"
	"slices"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// dialBackoff is the longest time for which the library refuses to dial an address that
	// did not answer. What returns is found within a minute; the library's is five.
	maxDialBackoff = 20 * time.Second

	// networkCheck is how often the addresses of the machine are looked at. The library
	// looks once a minute.
	networkInterval = 10 * time.Second
)

// followNetwork looks whether the machine has come to another network, until Close.
func (h *Host) watchNetwork() {
	every, ended := time.NewTicker(networkInterval), make(chan struct{})
	h.onClose(func() error { close(ended); return nil })
	h.spawn(func() {
		defer every.Stop()
		for before := interfaceIPs(); ; {
			select {
			case <-ended:
				return
			case <-every.C:
			}
			if now := interfaceIPs(); now != nil {
				h.handleAddrChange(before, now)
				before = now
			}
		}
	})
}

// ownAddresses are those of the machine's interfaces; nil if they cannot be read.
func interfaceIPs() (all []net.IP) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		slog.Debug("the machine's addresses cannot be read", "err", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			all = append(all, n.IP)
		}
	}
	return all
}

// moved acts on the machine's addresses. Where one is new it forgives all peers that did
// not answer, for here they may. It closes the connections from addresses that have gone,
// which over TCP would be noticed after a minute. It does not wait for that.
func (h *Host) handleAddrChange(before, now []net.IP) {
	has := func(all []net.IP, ip net.IP) bool { return slices.ContainsFunc(all, ip.Equal) }
	if slices.ContainsFunc(now, func(ip net.IP) bool { return !has(before, ip) }) {
		for _, p := range h.Peerstore().PeersWithAddrs() {
			h.clearBackoff(p)
		}
	}
	gone := func(at ma.Multiaddr) bool {
		ip, err := manet.ToIP(at) // QUIC's may be none, and it follows
		return err == nil && has(before, ip) && !has(now, ip)
	}
	for _, c := range h.Network().Conns() {
		if !IsRelayed(c.RemoteMultiaddr()) && gone(c.LocalMultiaddr()) {
			go c.Close()
		}
	}
}
