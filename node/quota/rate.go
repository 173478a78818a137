package quota

import (
	"sync"
	"time"
)

// Rate bounds how often each group may do something: Burst times at once, and then once in
// Every. It is safe for concurrent use, and forgets groups that may do all of Burst again.
type RateLimiter struct {
	Every time.Duration
	Burst int

	mu    sync.Mutex
	free  map[any]time.Time // from when on each may do all of Burst
	sweep int               // at how many groups they are looked through
}

// Allow reports whether each of some groups may do it now, and counts it for all of them
// then, and for none otherwise.
func (r *RateLimiter) Allow(groups ...any) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range groups {
		if r.free[g].Sub(now) > time.Duration(r.Burst-1)*r.Every {
			return false
		}
	}
	if len(r.free) >= r.sweep {
		for g, free := range r.free {
			if !free.After(now) {
				delete(r.free, g)
			}
		}
		r.sweep = max(1024, 2*len(r.free))
	}
	if r.free == nil {
		r.free = make(map[any]time.Time)
	}
	for _, g := range groups {
		free := r.free[g]
		if free.Before(now) {
			free = now
		}
		r.free[g] = free.Add(r.Every)
	}
	return true
}
