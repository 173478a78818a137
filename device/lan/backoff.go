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
// minute, and an eighth of that more by chance. The zero value is ready; the first attempt is not delayed. It is not
// safe for concurrent use.
type Backoff struct {
	tries int           // since the last success; counted up to 7
	pause time.Duration // until the next attempt
	last  time.Time     // the last attempt; zero for none
}

// Wait waits until the next attempt is due. When hurry can be received from, because a caller waits for the device, it
// waits for at most a second after the last attempt. The error is ctx's.
func (b *Backoff) Wait(ctx context.Context, hurry <-chan struct{}) error {
	if due := b.Due(false); due > 0 {
		timer := time.NewTimer(due)
		defer timer.Stop()
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-hurry:
				hurry = nil
				timer.Reset(b.Due(true))
			case <-timer.C:
				waiting = false
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.Tried()
	return nil
}

// Due returns the time until the next attempt, at most 0 when it is due. It is due at most a second after the last one
// when a caller waits for the device.
func (b *Backoff) Due(urgent bool) time.Duration {
	switch {
	case b.last.IsZero():
		return 0
	case urgent:
		return time.Until(b.last.Add(min(b.pause, firstTry)))
	}
	return time.Until(b.last.Add(b.pause))
}

// Tried notes an attempt, from now on which the pause before the next one counts. Wait does it itself.
func (b *Backoff) Tried() {
	b.last = time.Now()
	b.pause = min(firstTry<<b.tries, lastTry)
	b.pause += rand.N(b.pause / 8) // devices that were lost together do not come back together
	b.tries = min(b.tries+1, 7)
}

// Succeeded says that the device answers: the next attempt is due a second after the last one, and the pauses are
// short again.
func (b *Backoff) Succeeded() { b.tries, b.pause = 0, firstTry }
