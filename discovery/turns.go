package discovery

import "sync"

// Turns bound how many are served at a time, and how many of these are the same one's, so
// that nobody takes all places. They are safe for concurrent use.
type Turns[Who comparable] struct {
	most, each int

	mu    sync.Mutex
	taken int
	of    map[Who]int
}

// NewTurns has so many be served at a time at most, and so many of each.
func NewTurns[Who comparable](most, each int) *Turns[Who] {
	return &Turns[Who]{most: most, each: each, of: make(map[Who]int)}
}

// Take reports whether somebody may be served now. It is given back with Done then.
func (t *Turns[Who]) Take(who Who) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken >= t.most || t.of[who] >= t.each {
		return false
	}
	t.taken++
	t.of[who]++
	return true
}

// Done says that somebody was served.
func (t *Turns[Who]) Done(who Who) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if t.of[who]--; t.of[who] == 0 {
		delete(t.of, who)
	}
}
