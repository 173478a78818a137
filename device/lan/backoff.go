package lan

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstTry = time.Second
	lastTry  = time.Minute
)

// Backoff spaces attempts to connect: after the first failure by one second, then twice as long each time, up to a
// minute. The zero value is ready; the first attempt is not delayed. It is not safe for concurrent use.
type Backoff struct {
	tries int           // since the last success
	pause time.Duration // until the next attempt
	last  time.Time     // the last attempt; zero for none
}

// Wait waits until the next attempt is due. When hurry can be received from, because a caller waits for the device, it
// waits for at most a second after the last attempt. The error is ctx's.
func (b *Backoff) Wait(ctx context.Context, hurry <-chan struct{}) error {
	if !b.last.IsZero() {
		due := b.last.Add(b.pause)
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-hurry:
				hurry = nil
				if soon := b.last.Add(firstTry); soon.Before(due) {
					timer.Reset(time.Until(soon))
				}
			case <-timer.C:
				waiting = false
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.last = time.Now()
	b.tries++
	b.pause = min(firstTry<<min(b.tries-1, 6), lastTry)
	b.pause += rand.N(b.pause / 8) // devices that were lost together do not come back together
	return nil
}

// Succeeded says that the device answers: the next attempt is due a second after the last one, and the pauses are
// short again.
func (b *Backoff) Succeeded() { b.tries, b.pause = 0, firstTry }
