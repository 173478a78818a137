package access

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
)

const (
	guessInterval = time.Second // between the answers to two wrong guesses
	maxGuesses    = 8           // that wait for their answer
)

// guessLimiter delays the answers to wrong guesses. Right ones do not use it. The zero value
// is ready.
type guessLimiter struct {
	mu      sync.Mutex
	next    time.Time // of the next answer
	waiting int
}

// wait blocks until a wrong guess may be answered: a second after the previous one, or when
// ctx ends. With maxGuesses waiting already it returns at once, so that guesses do not use up
// the places of right answers.
func (l *guessLimiter) wait(ctx context.Context) {
	l.mu.Lock()
	if l.waiting == maxGuesses {
		l.mu.Unlock()
		return
	}
	l.waiting++
	if now := time.Now(); l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(guessInterval)
	turn := time.Until(l.next)
	l.mu.Unlock()
	device.Sleep(ctx, turn)
	l.mu.Lock()
	l.waiting--
	l.mu.Unlock()
}
