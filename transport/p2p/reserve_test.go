package p2p

import (
	"context"
	"sync"
	"testing"
	"time"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestRenewalsTakeTurns: a host with reservations at two relays renews one of them when it is time,
// and the other the next time.
func TestRenewalsTakeTurns(t *testing.T) {
	asked, answer, turns := make(chan int), make(chan bool), make(chan time.Time)
	site := newHost(t, Options{})
	addrs, err := site.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer addrs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer cancel()
	for i := range 2 {
		relay := newHost(t, Options{Relay: &Relay{Allow: func(identity.ID) bool {
			select {
			case asked <- i:
				return <-answer
			case <-ctx.Done():
				return false
			}
		}}}, overTCP)
		keeping.Go(func() { site.keepReservation(ctx, peer.AddrInfo{ID: relay.ID(), Addrs: relay.Addrs()}, turns, addrs) })
	}
	next := func() int {
		t.Helper()
		select {
		case i := <-asked:
			return i
		case <-ctx.Done():
			t.Fatal("no relay is asked")
			return 0
		}
	}
	for range 2 { // which gives it a place
		next()
		answer <- true
	}
	defer close(answer)
	turn := func() int {
		t.Helper()
		select {
		case turns <- time.Time{}:
		case <-ctx.Done():
			t.Fatal("no relay waits for its turn")
		}
		return next()
	}
	if first := turn(); turn() == first {
		t.Errorf("relay %d had both turns", first)
	}
}
