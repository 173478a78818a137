package mdns

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	maxPacket = 9000 // bytes: RFC 6762, section 17
	queueSize = 128  // packets: all sites answer a query at once
)

var (
	group4 = netip.MustParseAddrPort("224.0.0.251:5353")
	group6 = netip.MustParseAddrPort("[ff02::fb]:5353")
)

// link sends and receives on the host's interfaces.
type link struct {
	own     map[int]iface // by index
	packets <-chan packet
	failed  <-chan error // when a socket fails
	close   func()

	// send sends on an interface, to a group or to a host, without errors.
	send func(b []byte, on int, to netip.AddrPort)
}

type packet struct {
	bytes []byte
	on    int
	from  netip.AddrPort
}

// iface is an interface and its addresses, at least one.
type iface struct {
	net.Interface
	nets []netip.Prefix
}

// has reports whether the interface has an address of the group's family.
func (i iface) has(group netip.AddrPort) bool {
	for _, n := range i.nets {
		if n.Addr().Is4() == group.Addr().Is4() {
			return true
		}
	}
	return false
}

// contains reports whether an address is on the interface's link.
func (i iface) contains(a netip.Addr) bool {
	return a.IsLinkLocalUnicast() || slices.ContainsFunc(i.nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// reachable returns the addresses to announce: link-local IPv6 only without another one.
func (i iface) reachable() (list []netip.Addr) {
	var local []netip.Addr
	global := false
	for _, n := range i.nets {
		a := n.Addr()
		if a.Is6() && a.IsLinkLocalUnicast() {
			local = append(local, a)
			continue
		}
		global = global || a.Is6()
		list = append(list, a)
	}
	if global {
		return list
	}
	return append(list, local...)
}

// interfaces returns those with multicast and an address, by index.
func interfaces() (map[int]iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces (%w)", err)
	}
	own := make(map[int]iface)
	for _, i := range all {
		const need, not = net.FlagUp | net.FlagMulticast, net.FlagLoopback | net.FlagPointToPoint
		if i.Flags&need != need || i.Flags&not != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it has gone just now
		}
		var nets []netip.Prefix
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				ip, _ := netip.AddrFromSlice(n.IP)
				bits, _ := n.Mask.Size()
				nets = append(nets, netip.PrefixFrom(ip.Unmap(), bits))
			}
		}
		if len(nets) > 0 {
			own[i.Index] = iface{i, nets}
		}
	}
	return own, nil
}

// Interfaces returns the names of the interfaces in use.
func Interfaces() ([]string, error) {
	own, err := interfaces()
	var names []string
	for _, i := range own {
		names = append(names, i.Name)
	}
	return names, err
}

// listen joins the groups on the interfaces, for packets that wants accepts: a link is full
// of other devices' packets. One address family suffices. The caller closes the link.
func listen(own map[int]iface, wants func([]byte) bool) (*link, error) {
	v4, err4 := join4(own)
	v6, err6 := join6(own)
	if v4 == nil && v6 == nil {
		return nil, fmt.Errorf("no interface has multicast (%w)", errors.Join(err4, err6))
	}
	packets, failed, closed := make(chan packet, queueSize), make(chan error, 2), make(chan struct{})
	l := &link{own: own, packets: packets, failed: failed, close: sync.OnceFunc(func() {
		close(closed)
		if v4 != nil {
			v4.Close()
		}
		if v6 != nil {
			v6.Close()
		}
	})}
	l.send = func(b []byte, on int, to netip.AddrPort) {
		if to.Addr().Is4() && v4 != nil {
			send4(v4, b, on, to)
		} else if to.Addr().Is6() && v6 != nil {
			send6(v6, b, on, to)
		}
	}
	pass := func(b []byte, on int, from net.Addr, to net.IP) {
		if !wants(b) {
			return
		}
		p := packet{bytes.Clone(b), on, from.(*net.UDPAddr).AddrPort()}
		p.from = netip.AddrPortFrom(p.from.Addr().Unmap(), p.from.Port())
		if on == 0 {
			p.on = l.interfaceFor(p.from.Addr()) // Windows does not say
		}
		if _, ours := own[p.on]; !ours || !to.IsMulticast() && !l.isLocal(p) {
			return
		}
		select {
		case packets <- p:
		case <-closed:
		}
	}
	if v4 != nil {
		go func() {
			failed <- readPackets(func(b []byte) error {
				n, cm, from, err := v4.ReadFrom(b)
				if err != nil {
					return err
				}
				if cm == nil {
					cm = &ipv4.ControlMessage{Dst: group4.Addr().AsSlice()}
				}
				pass(b[:n], cm.IfIndex, from, cm.Dst)
				return nil
			})
		}()
	}
	if v6 != nil {
		go func() {
			failed <- readPackets(func(b []byte) error {
				n, cm, from, err := v6.ReadFrom(b)
				if err != nil {
					return err
				}
				if cm == nil {
					cm = &ipv6.ControlMessage{Dst: group6.Addr().AsSlice()}
				}
				pass(b[:n], cm.IfIndex, from, cm.Dst)
				return nil
			})
		}()
	}
	return l, nil
}

// readPackets calls read until it fails.
func readPackets(read func([]byte) error) error {
	b := make([]byte, maxPacket)
	for {
		if err := read(b); err != nil {
			return fmt.Errorf("the multicast DNS socket failed (%w)", err)
		}
	}
}

// isLocal reports whether a packet comes from the link itself. A unicast packet may come from
// elsewhere, and is not answered: it may be spoofed, to flood its source.
func (l *link) isLocal(p packet) bool {
	return l.own[p.on].contains(p.from.Addr().WithZone(""))
}

// interfaceFor returns the index of the interface whose link an address is on.
func (l *link) interfaceFor(from netip.Addr) int {
	for on := range l.own {
		if l.isLocal(packet{on: on, from: netip.AddrPortFrom(from, 0)}) {
			return on
		}
	}
	return 0
}

// multicast sends to all on an interface, in each of its address families.
func (l *link) multicast(b []byte, on int) {
	for _, group := range []netip.AddrPort{group4, group6} {
		if l.own[on].has(group) {
			l.send(b, on, group)
		}
	}
}

// ListenUDP shares the port with others who listen on a group's address.
func join4(on map[int]iface) (*ipv4.PacketConn, error) {
	udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(group4))
	if err != nil {
		return nil, err
	}
	c := ipv4.NewPacketConn(udp)
	_ = c.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true) // Windows has none
	_ = c.SetMulticastTTL(255)
	joined := false
	for _, i := range on {
		err = c.JoinGroup(&i.Interface, &net.UDPAddr{IP: group4.Addr().AsSlice()})
		joined = joined || err == nil
	}
	if !joined {
		c.Close()
		return nil, err
	}
	return c, nil
}

func join6(on map[int]iface) (*ipv6.PacketConn, error) {
	udp, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(group6))
	if err != nil {
		return nil, err
	}
	c := ipv6.NewPacketConn(udp)
	_ = c.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true)
	_ = c.SetMulticastHopLimit(255)
	joined := false
	for _, i := range on {
		err = c.JoinGroup(&i.Interface, &net.UDPAddr{IP: group6.Addr().AsSlice()})
		joined = joined || err == nil
	}
	if !joined {
		c.Close()
		return nil, err
	}
	return c, nil
}

func send4(c *ipv4.PacketConn, b []byte, on int, to netip.AddrPort) {
	if runtime.GOOS == "windows" {
		_ = c.SetMulticastInterface(&net.Interface{Index: on})
	}
	_, _ = c.WriteTo(b, &ipv4.ControlMessage{IfIndex: on}, net.UDPAddrFromAddrPort(to))
}

func send6(c *ipv6.PacketConn, b []byte, on int, to netip.AddrPort) {
	if runtime.GOOS == "windows" {
		_ = c.SetMulticastInterface(&net.Interface{Index: on})
	}
	_, _ = c.WriteTo(b, &ipv6.ControlMessage{IfIndex: on}, net.UDPAddrFromAddrPort(to))
}
