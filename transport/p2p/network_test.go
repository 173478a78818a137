package p2p

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// TestNewNetwork: who did not answer on one network is dialled on the next.
func TestNewNetwork(t *testing.T) {
	h := newHost(t, Options{}, overTCP)
	if swarm.BackoffMax > 30*time.Second {
		t.Errorf("peers that did not answer are left alone for %v", swarm.BackoffMax)
	}
	who, at := someone(t), ma.StringCast("/ip4/127.0.0.1/tcp/1")
	h.Peerstore().AddAddrs(who, []ma.Multiaddr{at}, peerstore.AddressTTL)
	away := h.Network().(interface{ Backoff() *swarm.DialBackoff }).Backoff()
	for range 10 {
		away.AddBackoff(who, at)
	}
	changes, err := h.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	<-changes.Out() // how it began
	if err := h.basic.Network().Listen(ma.StringCast("/ip4/127.0.0.2/tcp/0")); err != nil {
		t.Skip(err) // elsewhere than on Linux
	}
	<-changes.Out()
	ctx, cancel := context.WithTimeout(t.Context(), dialBackoff/4)
	defer cancel()
	for every := time.NewTicker(10 * time.Millisecond); away.Backoff(who, at); <-every.C {
		if ctx.Err() != nil {
			t.Fatal("on another network it is not dialled")
		}
	}
}

// TestFailedHoles: strangers whose holes cannot be punched, one after the other, end the
// connection to the relay once.
func TestFailedHoles(t *testing.T) {
	relay, site := newHost(t, Options{Relay: &Relay{}}, overTCP), newHost(t, Options{})
	connected := make(chan bool, 100)
	relay.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) { connected <- true }})
	news, err := site.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer news.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	turns, ended := make(chan time.Time), make(chan bool)
	go func() {
		defer close(ended)
		site.keep(ctx, peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}, turns, news)
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
