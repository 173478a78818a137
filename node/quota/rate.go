package quota

import (
	"sync"
	"time"
)

// Rate bounds how often something happens: Burst times at once, and PerSecond times a second
// in the long run.
type Rate struct {
	PerSecond, Burst float64

	// Debt is the number of refused events that also count, so that a caller that continues
	// waits longer.
	Debt float64
}

// Bucket is a token bucket. The zero value is full. It is used with one Rate, and not safe for
// concurrent use.
type Bucket struct {
	tokens float64
	at     time.Time // zero for a full one
}

// Take reports whether there are n tokens, and takes them. Of a Rate with a Debt it takes them
// in any case.
func (b *Bucket) Take(now time.Time, r Rate, n float64) bool {
	tokens := b.Tokens(now, r)
	b.tokens, b.at = tokens, now
	if tokens >= n || r.Debt > 0 {
		b.tokens = max(tokens-n, -r.Debt)
	}
	return tokens >= n
}

// Tokens returns how many there are, a negative number for a debt.
func (b *Bucket) Tokens(now time.Time, r Rate) float64 {
	if b.at.IsZero() {
		return r.Burst
	}
	return min(b.tokens+now.Sub(b.at).Seconds()*r.PerSecond, r.Burst)
}

// Wait returns the time until there is a token.
func (b *Bucket) Wait(now time.Time, r Rate) time.Duration {
	return max(0, time.Duration((1-b.Tokens(now, r))/r.PerSecond*float64(time.Second)))
}

// RateLimiter holds a Bucket for each group. It is safe for concurrent use, and forgets groups
// whose bucket is full again.
type RateLimiter struct {
	Rate

	mu      sync.Mutex
	buckets map[any]*Bucket
	sweep   int // from how many groups on full buckets are deleted
}

// Allow takes a token from each of some groups, or none and returns false if one has none.
func (l *RateLimiter) Allow(groups ...any) bool { return l.Take(1, groups...) }

// Take takes n tokens from each of some groups, or none and returns false if one has fewer.
func (l *RateLimiter) Take(n float64, groups ...any) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range groups {
		b := l.buckets[g]
		if b == nil {
			b = new(Bucket)
		}
		if b.Tokens(now, l.Rate) < n {
			return false
		}
	}
	if len(l.buckets) >= l.sweep {
		for g, b := range l.buckets {
			if b.Tokens(now, l.Rate) >= l.Burst {
				delete(l.buckets, g)
			}
		}
		l.sweep = max(1024, 2*len(l.buckets))
	}
	if l.buckets == nil {
		l.buckets = make(map[any]*Bucket)
	}
	for _, g := range groups {
		if l.buckets[g] == nil {
			l.buckets[g] = new(Bucket)
		}
		l.buckets[g].Take(now, l.Rate, n)
	}
	return true
}
