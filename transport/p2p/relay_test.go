package p2p

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
)

// over is where a site is behind a relay that keeps a place for it.
func over(t *testing.T, relay, site *Host) []string {
	t.Helper()
	r := peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}
	if err := site.Connect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := circuit.Reserve(t.Context(), site, r); err != nil {
		t.Fatal(err)
	}
	return []string{relay.at()[0] + "/p2p/" + relay.ID().String() + "/p2p-circuit"}
}

// TestRelayed calls over a relay, and goes over to a direct connection when one is there,
// while a subscription goes on where it began.
func TestRelayed(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		relay, site, other := newHost(t, Options{Relay: &Relay{}}, listen), newHost(t, Options{}, listen), newHost(t, Options{})
		serve(t, site, nil)
		at := over(t, relay, site)
		c := other.Caller(site.id(t), func() []string { return at }, codec)
		res, err := c.Call(ctx, ask(1, "who", nil), nil)
		if got := text(t, res, err); got != `"`+other.ID().String()+`"` {
			t.Errorf("the site takes its caller for %s", got)
		}
		if p := c.Path(); p != Relayed {
			t.Fatalf("the path is %q", p)
		}
		if pong, err := other.Ping(ctx, site.id(t)); err != nil || pong.Path != Relayed {
			t.Errorf("%+v, %v", pong, err)
		}

		waiting, ended := make(chan bool), make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, ask(2, "wait", nil), func(string, rpc.Raw) { close(waiting) })
			ended <- err
		}()
		<-waiting
		other.direct(t, ctx, site)
		res, err = c.Call(ctx, ask(3, "echo", "x"), nil)
		if got := text(t, res, err); got != `"x"` {
			t.Error(got)
		}
		if p := c.Path(); p != Direct {
			t.Errorf("the path is %q", p)
		}
		select {
		case err := <-ended:
			t.Errorf("the subscription has ended: %v", err)
		default:
		}
		relay.Network().ClosePeer(site.ID()) // the relay's limits do as much
		if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the subscription ended with %v", err)
		}
		res, err = c.Call(ctx, ask(4, "echo", "y"), nil)
		if got := text(t, res, err); got != `"y"` {
			t.Error(got)
		}
	})
}

// TestRelayRestarts: the relay stops during a call, and the next call works once it is back.
func TestRelayRestarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := identity.New()
	relay, err := New(Options{Key: key, Relay: &Relay{}, Listen: []string{overTCP}})
	if err != nil {
		t.Fatal(err)
	}
	where := relay.at()
	site, other := newHost(t, Options{}), newHost(t, Options{})
	serve(t, site, nil)
	at := over(t, relay, site)
	c := other.Caller(site.id(t), func() []string { return at }, rpc.CBOR)
	waiting, ended := make(chan bool), make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, ask(1, "wait", nil), func(string, rpc.Raw) { close(waiting) })
		ended <- err
	}()
	<-waiting
	if err := relay.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the call ended with %v", err)
	}
	var unreached *UnreachableError
	if _, err := c.Call(ctx, ask(2, "echo", nil), nil); !errors.As(err, &unreached) {
		t.Errorf("without a relay: %v", err)
	}
	relay = newHost(t, Options{Key: key, Relay: &Relay{}}, where...)
	site.clearBackoff(relay.ID())
	over(t, relay, site)
	begun := time.Now()
	res, err := c.Call(ctx, ask(3, "echo", "x"), nil)
	if got := text(t, res, err); got != `"x"` {
		t.Error(got)
	}
	t.Logf("the next call took %v", time.Since(begun))
}

// direct connects without the relay, as a hole that was punched does.
func (h *Host) direct(t *testing.T, ctx context.Context, site *Host) {
	t.Helper()
	if err := h.Connect(network.WithForceDirectDial(ctx, "test"), peer.AddrInfo{ID: site.ID(), Addrs: site.Addrs()}); err != nil {
		t.Fatal(err)
	}
}
