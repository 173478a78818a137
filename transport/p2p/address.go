package p2p

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ListenAll returns the multiaddrs of TCP and QUIC at a port, on all addresses of the
// machine.
func ListenAll(port uint16) []string {
	return []string{
		fmt.Sprintf("/ip4/0.0.0.0/tcp/%d", port), fmt.Sprintf("/ip4/0.0.0.0/udp/%d/quic-v1", port),
		fmt.Sprintf("/ip6/::/tcp/%d", port), fmt.Sprintf("/ip6/::/udp/%d/quic-v1", port),
	}
}

// PeerID returns the libp2p form of an identity.
func PeerID(id identity.ID) (peer.ID, error) { return peer.Decode(id.PeerID()) }

func idOf(p peer.ID) (identity.ID, error) { return identity.Parse(p.String()) }

// ParsePeers parses addresses that name their peer, such as
// /dns4/relay.example/udp/8475/quic-v1/p2p/12D3KooW…, and groups them by peer. A host listens for
// QUIC and TCP at one port, and some networks block UDP. So for each address of one transport it
// adds that of the other.
func ParsePeers(all []string) ([]peer.AddrInfo, error) {
	var peers []peer.AddrInfo
	for _, text := range all {
		one, err := peer.AddrInfoFromString(text)
		if err != nil {
			return nil, fmt.Errorf("%.160q is not the address of a peer, such as /ip4/192.0.2.7/udp/8475/quic-v1/p2p/12D3KooW… (%w)", text, err)
		}
		i := slices.IndexFunc(peers, func(p peer.AddrInfo) bool { return p.ID == one.ID })
		if i < 0 {
			i, peers = len(peers), append(peers, peer.AddrInfo{ID: one.ID})
		}
		peers[i].Addrs = append(peers[i].Addrs, one.Addrs...)
	}
	for i := range peers {
		peers[i].Addrs = addOtherTransport(peers[i].Addrs)
	}
	return peers, nil
}

// WithBothTransports returns addresses that name their peer, each with its counterpart for
// the other of QUIC and TCP.
func WithBothTransports(all []string) ([]string, error) {
	peers, err := ParsePeers(all)
	if err != nil {
		return nil, err
	}
	var both []string
	for _, p := range peers {
		for _, a := range p.Addrs {
			both = append(both, a.String()+"/p2p/"+p.ID.String())
		}
	}
	return both, nil
}

// addOtherTransport appends for each address by QUIC the one by TCP, and the reverse, unless
// it is there. The order stays.
func addOtherTransport(addrs []ma.Multiaddr) []ma.Multiaddr {
	all := slices.Clone(addrs)
	for _, a := range addrs {
		var host, port, rest string
		if len(a) == 3 && a[1].Protocol().Code == ma.P_UDP && a[2].Protocol().Code == ma.P_QUIC_V1 {
			host, port, rest = a[:1].String(), "tcp/"+a[1].Value(), ""
		} else if len(a) == 2 && a[1].Protocol().Code == ma.P_TCP {
			host, port, rest = a[:1].String(), "udp/"+a[1].Value(), "/quic-v1"
		} else {
			continue
		}
		if other, err := ma.NewMultiaddr(host + "/" + port + rest); err == nil && !ma.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

// IsRelayed reports whether an address leads through a relay.
func IsRelayed(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// ListenAddrs returns the multiaddrs of TCP and QUIC of an address and port of the machine,
// such as 192.0.2.7:8475 or, for all addresses, :8475.
func ListenAddrs(listen string) ([]string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" {
		return ListenAll(uint16(n)), err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, err
	}
	family := "ip4"
	if ip.Is6() {
		family = "ip6"
	}
	return []string{fmt.Sprintf("/%s/%s/tcp/%d", family, ip, n), fmt.Sprintf("/%s/%s/udp/%d/quic-v1", family, ip, n)}, nil
}

// announcedAddrs selects the addresses that the host tells others, and adds those through relays.
// An observed address is told only once others have reached the host there. A caller, or a hole
// punch, waits for each unreachable address before it tries another.
func (h *Host) announcedAddrs(all []ma.Multiaddr) []ma.Multiaddr {
	interfaces, _ := h.Network().InterfaceListenAddresses() // on an error, others have to confirm all
	reached, _, _ := h.basic.ConfirmedAddrs()
	all = slices.DeleteFunc(slices.Clone(all), func(a ma.Multiaddr) bool {
		return manet.IsPublicAddr(a) && !IsRelayed(a) && !ma.Contains(interfaces, a) && !ma.Contains(reached, a)
	})
	return h.relayAddrs.add(all)
}

// portMapTimeout bounds how long the router may take to open a port.
const portMapTimeout = 15 * time.Second

// delayedObservations hides the addresses that others observe until a time. AutoNAT tries each
// address once in two minutes, and the first should be that of the port which the router opens.
type delayedObservations struct {
	*observedaddrs.Manager
	until time.Time
}

func (p delayedObservations) AddrsFor(local ma.Multiaddr) []ma.Multiaddr {
	if time.Now().Before(p.until) {
		return nil
	}
	return p.Manager.AddrsFor(local)
}
