package access

import (
	"context"
	"sync"
	"time"
)

const (
	paceLength  = time.Second // between the answers to two that are wrong
	paceWaiting = 8           // wrong ones that wait for theirs
)

// guessLimiter slows who guesses, and nobody who is right: that one does not ask it. The zero
// guessLimiter is ready.
type guessLimiter struct {
	mu      sync.Mutex
	next    time.Time // when the next may be answered
	waiting int
}

// wait returns when one that is wrong may be answered: a second after the one before, or
// when ctx ends; where more of them wait than is good, at once.
func (p *guessLimiter) wait(ctx context.Context) {
	p.mu.Lock()
	if p.waiting == paceWaiting {
		p.mu.Unlock()
		return // those who wait would take the places of who is right
	}
	p.waiting++
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(paceLength)
	turn := time.NewTimer(time.Until(p.next))
	p.mu.Unlock()
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.waiting--
	p.mu.Unlock()
}
