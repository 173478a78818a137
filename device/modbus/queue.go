package modbus

import (
	"context"
	"slices"
	"sync"
)

// queue is a lock that is given away in the order of the calls, to urgent ones first.
type queue struct {
	mu      sync.Mutex
	taken   bool
	waiting []waiter
}

type waiter struct {
	urgent bool
	given  chan struct{}
}

// lock waits for the lock until ctx ends. After nil the caller has to call unlock.
func (q *queue) lock(ctx context.Context, urgent bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return nil
	}
	w := waiter{urgent, make(chan struct{})}
	at := len(q.waiting)
	if urgent {
		at = q.firstPatient()
	}
	q.waiting = slices.Insert(q.waiting, at, w)
	q.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	at = slices.Index(q.waiting, w)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.mu.Unlock()
	if at < 0 { // it was given meanwhile
		q.unlock()
	}
	return ctx.Err()
}

func (q *queue) firstPatient() int {
	if i := slices.IndexFunc(q.waiting, func(w waiter) bool { return !w.urgent }); i >= 0 {
		return i
	}
	return len(q.waiting)
}

func (q *queue) unlock() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.taken = false
		return
	}
	close(q.waiting[0].given)
	q.waiting = slices.Delete(q.waiting, 0, 1)
}
