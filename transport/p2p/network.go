package p2p

import (
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	// maxDialBackoff bounds how long the library refuses to dial an address that did not
	// answer: a peer that returns is found within a minute. The library's value is five.
	maxDialBackoff = 20 * time.Second

	// networkInterval is how often the machine's addresses and idle connections are checked.
	// The library looks at addresses once a minute.
	networkInterval = 10 * time.Second

	// idleGrace is the age from which an idle connection is closed: the other end often
	// uses it too, soon after it was opened.
	idleGrace = 30 * time.Second
)

// watchNetwork follows changes of the machine's addresses and closes idle connections, until
// Close.
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
			h.closeIdle(time.Now())
		}
	})
}

// closeIdle closes idle connections: each is kept alive every 15 s at both ends, for nothing.
// It does not block.
func (h *Host) closeIdle(now time.Time) {
	for _, c := range h.Network().Conns() {
		if h.isIdle(c, now) {
			go c.Close()
		}
	}
}

// isIdle reports whether this host opened a connection, some time ago, that nothing protects
// and that carries no streams but background ones.
func (h *Host) isIdle(c network.Conn, now time.Time) bool {
	used := func(s network.Stream) bool { return h.background == "" || s.Protocol() != h.background }
	info := c.Stat()
	return info.Direction == network.DirOutbound && now.Sub(info.Opened) > idleGrace &&
		!h.ConnManager().IsProtected(c.RemotePeer(), "") && !slices.ContainsFunc(c.GetStreams(), used)
}

// interfaceIPs returns the addresses of the machine's interfaces, nil if they cannot be read.
func interfaceIPs() (all []net.IP) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		slog.Debug("interface addresses unavailable", "err", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			all = append(all, n.IP)
		}
	}
	return all
}

// handleAddrChange acts on a change of the machine's addresses. After a new one it clears the
// dial back-off of all peers, which may answer from here. It closes the connections from
// addresses that are gone, which TCP would notice after a minute. It does not block.
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
