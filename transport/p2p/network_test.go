package p2p

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// TestNewNetwork: on another network those are dialled that did not answer, and connections
// from an address that has gone end.
func TestNewNetwork(t *testing.T) {
	h, other := newHost(t, Options{}, overTCP), newHost(t, Options{}, overTCP)
	if swarm.BackoffMax > 30*time.Second {
		t.Errorf("peers that did not answer are left alone for %v", swarm.BackoffMax)
	}
	if err := h.Connect(t.Context(), peer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
		t.Fatal(err)
	}
	who, at := someone(t), ma.StringCast("/ip4/127.0.0.1/tcp/1")
	h.Peerstore().AddAddrs(who, []ma.Multiaddr{at}, peerstore.AddressTTL)
	away := h.Network().(interface{ Backoff() *swarm.DialBackoff }).Backoff()
	away.AddBackoff(who, at)
	loopback, home, office := net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 1), net.IPv4(198, 51, 100, 1)
	h.handleAddrChange([]net.IP{loopback, home}, []net.IP{loopback, home})
	h.handleAddrChange([]net.IP{loopback, home}, []net.IP{loopback}) // a cable is pulled
	if !away.Backoff(who, at) {
		t.Error("without a new network it is dialled")
	}
	h.handleAddrChange([]net.IP{loopback}, []net.IP{loopback, office})
	if away.Backoff(who, at) {
		t.Error("on another network it is not dialled")
	}
	if !h.hasDirectConn(other.ID()) {
		t.Error("a connection has ended whose address is still there")
	}
	ended := make(chan bool, 1)
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(network.Network, network.Conn) { ended <- true }})
	h.handleAddrChange([]net.IP{loopback, office}, []net.IP{office})
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("a connection from an address that has gone is kept")
	}
}

// TestCloseIdle: a connection is closed by the host that opened it, once it is old, nothing
// protects it and it carries no stream but background ones.
func TestCloseIdle(t *testing.T) {
	const background, call = "/test/background", "/test/call"
	h, other := newHost(t, Options{Background: background}, overTCP), newHost(t, Options{Background: background}, overTCP)
	for _, id := range []protocol.ID{background, call} {
		other.SetStreamHandler(id, func(s network.Stream) { io.Copy(s, s) })
	}
	if err := h.Connect(t.Context(), peer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool, 1)
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(network.Network, network.Conn) { ended <- true }})
	open := func(id protocol.ID) network.Stream {
		s, err := h.NewStream(t.Context(), other.ID(), id)
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		if err == nil {
			_, err = s.Read(make([]byte, 1))
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	open(background)
	used, late := open(call), time.Now().Add(2*idleGrace)
	keeps := func(why string) {
		t.Helper()
		for _, c := range h.Network().Conns() {
			if h.isIdle(c, late) {
				t.Errorf("%s, and it is idle", why)
			}
		}
	}
	keeps("a call uses it")
	used.Reset()
	h.ConnManager().Protect(other.ID(), "test")
	keeps("it is protected")
	h.ConnManager().Unprotect(other.ID(), "test")
	other.closeIdle(late)
	h.closeIdle(time.Now())
	if !h.hasDirectConn(other.ID()) {
		t.Fatal("a young connection was closed, or that of another host")
	}
	every, end := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer every.Stop()
	for { // now and then both hosts tell each other who they are, which uses it, too
		h.closeIdle(late)
		select {
		case <-ended:
			return
		case <-every.C:
		case <-end:
			t.Fatal("an idle connection stays")
		}
	}
}

// TestFailedHoles: strangers whose holes cannot be punched, one after the other, end the
// connection to the relay once.
func TestFailedHoles(t *testing.T) {
	relay, site := newHost(t, Options{Relay: &Relay{}}, overTCP), newHost(t, Options{})
	connected := make(chan bool, 100)
	relay.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) { connected <- true }})
	addrs, err := site.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer addrs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	turns, ended := make(chan time.Time), make(chan bool)
	go func() {
		defer close(ended)
		site.keepReservation(ctx, peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}, turns, addrs)
	}()
	for range 12 {
		site.punched.mu.Lock()
		site.punched.failed = time.Now()
		site.punched.mu.Unlock()
		select {
		case turns <- time.Time{}: // it has a place
		case <-ctx.Done():
			t.Fatal("there is no place to be renewed")
		}
	}
	cancel()
	<-ended
	if n := len(connected); n != 2 {
		t.Errorf("%d connections", n)
	}
}
