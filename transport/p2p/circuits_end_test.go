package p2p

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// TestLimitsAreReleased: however a circuit or a place at a relay ends, it is counted no more.
func TestLimitsAreReleased(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	relay := newHost(t, Options{}, overTCP)
	c := newCircuits(relay.Host, nil)
	service, err := circuitrelay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	c.start()
	reserve := func(h *Host) {
		join(t, relay, h)
		if _, err := circuit.Reserve(ctx, h, peer.AddrInfo{ID: relay.ID()}); err != nil {
			t.Fatal(err)
		}
	}
	site, dumb, away := newHost(t, Options{}), newHost(t, Options{}), newHost(t, Options{})
	reserve(site)
	reserve(dumb)
	asked := make(chan network.Stream, 16)
	dumb.SetStreamHandler(proto.ProtoIDv2Stop, func(s network.Stream) { asked <- s })
	reserve(away)
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(3 * relayTimeout); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d circuits and %d places are counted", what, c.held.Held(nil), c.held.Held(reservationsFrom{}))
			}
		}
	}
	if n := c.held.Held(reservationsFrom{}); n != 3 {
		t.Fatalf("%d places", n)
	}
	away.Close()
	await("a site that has gone", func() bool { return c.held.Held(reservationsFrom{}) == 2 })

	caller, hasty := newHost(t, Options{}, from(2)), newHost(t, Options{}, from(3))
	join(t, relay, caller, hasty)
	if caller.halfOpen(ctx, relay, away) {
		t.Error("a circuit to nowhere")
	}
	if !caller.halfOpen(ctx, relay, site) || !hasty.halfOpen(ctx, relay, site) {
		t.Fatal("no circuit")
	}
	for range 2 {
		go caller.halfOpen(ctx, relay, dumb)
		go hasty.halfOpen(ctx, relay, dumb)
	}
	for i := range 4 {
		if s := <-asked; i < 2 {
			s.Reset()
		} // and others are never answered
	}
	hasty.Close()
	await("one that is open", func() bool { return c.held.Held(nil) == 1 })
	caller.Close()
	await("callers that have gone", func() bool { return c.held.Held(nil) == 0 })
	site.Close()
	dumb.Close()
	await("all have gone", func() bool { return c.held.Held(reservationsFrom{}) == 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) > 0 || len(c.reservations) > 0 {
		t.Errorf("%v, %v are left", c.open, c.reservations)
	}
}

// TestResendCallersEnds: a relay that takes seconds for each caller that is reported again delays
// the end of a site's slots by one of them only.
func TestResendCallersEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, told := newConnLimiter(nil, nil, false), 0
	p.reportCaller = func(peer.ID, peer.ID) bool { told++; cancel(); return true }
	p.reported = []route{{"a", "relay"}, {"b", "relay"}, {"c", "relay"}}
	if p.resendCallers(ctx, "relay"); told != 1 {
		t.Errorf("it is told of %d", told)
	}
}
