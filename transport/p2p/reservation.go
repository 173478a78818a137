package p2p

import (
	"context"
	"math/rand/v2"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

const (
	// minRetryPause is the longest pause before the first retry at a relay after a stable
	// reservation. It doubles with each failure up to maxRetryPause: a relay that returns is
	// asked again within a minute, connection time included.
	minRetryPause, maxRetryPause = 500 * time.Millisecond, 25 * time.Second

	// A reservation that ends before stableAfter counts as a failure.
	stableAfter = time.Minute

	// announceGrace is how long the addresses through a relay stay announced after it stopped
	// answering. It may be restarting, and two announcements would go to everybody.
	announceGrace = 3 * time.Second
)

// keeper keeps a reservation at one relay.
type reservationKeeper struct {
	request     func(ctx context.Context, dial bool) ([]ma.Multiaddr, error) // reserves or, without dial, renews on the existing connection
	isConnected func() bool
	lost        <-chan struct{}         // receives after a connection to the relay has ended
	renewals    <-chan time.Time        // receives when the reservation is to be renewed
	announce    func(at []ma.Multiaddr) // announces the addresses through the relay; none without a reservation
}

// run blocks until ctx ends. A failed request, and the end of a reservation, is followed by
// a random pause that nothing shortens. Pauses double until a reservation has lasted for
// relaySettled.
func (k *reservationKeeper) run(ctx context.Context) {
	var since, until time.Time // of the last reservation; the former is zero while there is none
	for failures := 0; ctx.Err() == nil; {
		at, err := k.request(ctx, since.IsZero())
		if err == nil {
			k.announce(at)
			until = time.Now()
			if since.IsZero() {
				since = until
			}
			if k.waitRenewal(ctx) {
				continue
			}
		}
		if !since.IsZero() {
			if until = time.Now(); until.Sub(since) >= stableAfter {
				failures = 0
			}
			since = time.Time{}
		}
		if err != nil && time.Since(until) > announceGrace {
			k.announce(nil)
		}
		pause := min(minRetryPause<<failures, maxRetryPause)
		if minRetryPause<<failures < maxRetryPause {
			failures++
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)): // not all sites of a relay at once
		}
	}
}

// due waits until the reservation is to be renewed, and returns false if it is lost before.
func (k *reservationKeeper) waitRenewal(ctx context.Context) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-k.lost:
			if !k.isConnected() { // else an earlier connection has ended
				return false
			}
		case <-k.renewals:
			return k.isConnected()
		}
	}
}
