package bed

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// PortMap has the router open a port for who asks inside, by NAT-PMP (RFC 6886).
func (h *Home) PortMap() {
	h.w.t.Helper()
	conn, err := listenOn(h.Router, &net.UDPAddr{IP: net.ParseIP(Gateway), Port: 5351})
	if err != nil {
		h.w.t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.serve(conn)
	}()
	h.w.t.Cleanup(func() { conn.Close(); <-served })
}

func (h *Home) serve(conn *net.UDPConn) {
	var open []uint16
	ask := make([]byte, 64)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(ask)
		if err != nil {
			return
		}
		answer := []byte{0, ask[1] + 128, 0, 0, 0, 0, 0, 1} // version 0, no fault, up for a second
		switch {
		case n == 2 && ask[1] == 0: // what is the address?
			ip := netip.MustParseAddr(h.IP).As4()
			answer = append(answer, ip[:]...)
		case n == 12 && (ask[1] == 1 || ask[1] == 2): // open a port of UDP or TCP for so long
			inside := netip.AddrPortFrom(from.Addr().Unmap(), binary.BigEndian.Uint16(ask[4:]))
			if outside := binary.BigEndian.Uint16(ask[6:]); !slices.Contains(open, outside) {
				h.Forward(int(outside), inside.String())
				open = append(open, outside)
			}
			answer = append(answer, ask[4:12]...) // as it wishes
		default:
			continue
		}
		_, _ = conn.WriteToUDPAddrPort(answer, from)
	}
}

// listenOn listens on a host, from this process.
func listenOn(host string, at *net.UDPAddr) (conn *net.UDPConn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with the goroutine, for it is elsewhere then
		var ns *os.File
		if ns, err = os.Open("/run/netns/" + host); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err == nil {
			conn, err = net.ListenUDP("udp4", at)
		}
	}()
	<-done
	return conn, err
}
