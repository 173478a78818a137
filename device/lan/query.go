package lan

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"agentsite/device"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	mdnsPort   = 5353
	maxPacket  = 9000                   // bytes: RFC 6762, section 17
	maxPackets = 400                    // of one query; more is a flood
	settleTime = 300 * time.Millisecond // after the first answer, for others
	firstPause = time.Second            // between two questions, doubled each time: RFC 6762, section 5.2
)

var (
	group4 = netip.MustParseAddrPort("224.0.0.251:5353")
	group6 = netip.MustParseAddrPort("[ff02::fb]:5353")
)

// query is a one-shot query (RFC 6762, section 5.1): the questions go from a port of its own to all of the network,
// and the answers come to that port only. So this process takes no part in the network's other mDNS traffic.
type query struct {
	own     map[int]iface // by index
	id      uint16
	packets chan packet
	v4      *ipv4.PacketConn
	v6      *ipv6.PacketConn
	reading sync.WaitGroup
	ended   chan struct{}
}

// packet is an answer from the link of an interface.
type packet struct {
	bytes []byte
	on    iface
}

// iface is an interface and its networks, at least one.
type iface struct {
	net.Interface
	nets []netip.Prefix
}

// contains reports whether an address is on the interface's link.
func (i iface) contains(a netip.Addr) bool {
	return a.IsLinkLocalUnicast() || slices.ContainsFunc(i.nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// interfaces returns those with multicast and an address, by index.
func interfaces() map[int]iface {
	own := make(map[int]iface)
	all, _ := net.Interfaces()
	for _, i := range all {
		const need, not = net.FlagUp | net.FlagMulticast, net.FlagLoopback | net.FlagPointToPoint
		if i.Flags&need != need || i.Flags&not != 0 {
			continue
		}
		addrs, _ := i.Addrs()
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
	return own
}

// openQuery opens the sockets; one address family suffices. The caller closes the query.
func openQuery() (*query, error) {
	q := &query{own: interfaces(), id: uint16(rand.N(1<<16-1) + 1), packets: make(chan packet, 16), ended: make(chan struct{})}
	if len(q.own) == 0 {
		return nil, device.Faultf(device.Offline, "there is no network: no interface has an address; look at `ip address`")
	}
	udp4, err4 := net.ListenUDP("udp4", nil)
	if err4 == nil {
		q.v4 = ipv4.NewPacketConn(udp4)
		_ = q.v4.SetControlMessage(ipv4.FlagInterface, true) // Windows has none
		_ = q.v4.SetMulticastTTL(255)
		q.reading.Go(func() {
			q.read(func(b []byte) (int, int, net.Addr, error) {
				n, cm, from, err := q.v4.ReadFrom(b)
				if cm == nil {
					cm = new(ipv4.ControlMessage)
				}
				return n, cm.IfIndex, from, err
			})
		})
	}
	udp6, err6 := net.ListenUDP("udp6", nil)
	if err6 == nil {
		q.v6 = ipv6.NewPacketConn(udp6)
		_ = q.v6.SetControlMessage(ipv6.FlagInterface, true)
		_ = q.v6.SetMulticastHopLimit(255)
		q.reading.Go(func() {
			q.read(func(b []byte) (int, int, net.Addr, error) {
				n, cm, from, err := q.v6.ReadFrom(b)
				if cm == nil {
					cm = new(ipv6.ControlMessage)
				}
				return n, cm.IfIndex, from, err
			})
		})
	}
	if err4 != nil && err6 != nil {
		return nil, device.Faultf(device.Offline, "the network cannot be asked (%w)", errors.Join(err4, err6))
	}
	return q, nil
}

func (q *query) close() {
	close(q.ended)
	if q.v4 != nil {
		q.v4.Close()
	}
	if q.v6 != nil {
		q.v6.Close()
	}
	q.reading.Wait()
}

// read passes on the answers to this query that come from a link itself, until the socket is closed. It ends after
// maxPackets, so that a flood costs no more than that.
func (q *query) read(from func([]byte) (n, on int, from net.Addr, err error)) {
	b := make([]byte, maxPacket)
	for range maxPackets {
		n, on, sender, err := from(b)
		if err != nil {
			var passing net.Error
			if errors.As(err, &passing) && !errors.Is(err, net.ErrClosed) {
				continue // an ICMP error of a packet that was sent
			}
			return
		}
		link, ok := q.link(on, sender)
		if !ok || !isAnswer(b[:n], q.id) {
			continue
		}
		select {
		case q.packets <- packet{slices.Clone(b[:n]), link}:
		case <-q.ended:
			return
		}
	}
}

// link returns the interface on whose link a responder is: RFC 6762, section 11.
func (q *query) link(on int, sender net.Addr) (iface, bool) {
	udp, ok := sender.(*net.UDPAddr)
	if !ok || udp.Port != mdnsPort {
		return iface{}, false
	}
	a := udp.AddrPort().Addr().Unmap().WithZone("")
	if i, known := q.own[on]; known || on != 0 {
		return i, known && i.contains(a)
	}
	for _, i := range q.own {
		if i.contains(a) {
			return i, true
		}
	}
	return iface{}, false
}

// isAnswer reports whether a packet is a response to the query with that id.
func isAnswer(b []byte, id uint16) bool {
	const response = 0x80 // in the third byte
	return len(b) >= 12 && b[2]&response != 0 && uint16(b[0])<<8|uint16(b[1]) == id
}

// run asks what ask returns now, again after pauses, and calls answer with each packet, until ctx ends. If answer
// returns a time, it ends after that time without asking again. The error is ctx's, or nil.
func (q *query) run(ctx context.Context, ask func() []question, answer func(packet) time.Duration) error {
	pause := firstPause
	timer := time.NewTimer(0)
	defer timer.Stop()
	ending := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-q.packets:
			if rest := answer(p); rest > 0 && !ending {
				ending = true
				timer.Reset(rest)
			}
		case <-timer.C:
			if ending {
				return nil
			}
			if b := pack(q.id, ask()); b != nil {
				q.multicast(b)
			}
			timer.Reset(pause)
			pause *= 2
		}
	}
}

// multicast sends to all on every interface, in each address family, without errors.
func (q *query) multicast(b []byte) {
	for on, i := range q.own {
		if q.v4 != nil && slices.ContainsFunc(i.nets, func(n netip.Prefix) bool { return n.Addr().Is4() }) {
			if runtime.GOOS == "windows" {
				_ = q.v4.SetMulticastInterface(&i.Interface)
			}
			_, _ = q.v4.WriteTo(b, &ipv4.ControlMessage{IfIndex: on}, net.UDPAddrFromAddrPort(group4))
		}
		if q.v6 != nil && slices.ContainsFunc(i.nets, func(n netip.Prefix) bool { return n.Addr().Is6() }) {
			if runtime.GOOS == "windows" {
				_ = q.v6.SetMulticastInterface(&i.Interface)
			}
			_, _ = q.v6.WriteTo(b, &ipv6.ControlMessage{IfIndex: on}, net.UDPAddrFromAddrPort(group6))
		}
	}
}
