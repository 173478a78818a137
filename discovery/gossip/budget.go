package gossip

import "time"

// rate is how much one may do.
type rate struct {
	perSecond, burst float64
	debt             float64 // how far beyond is counted
}

// budget is what of it is left.
type budget struct {
	left float64
	at   time.Time
}

// take reports whether there is enough for n. What is not there is owed, where that counts.
func (b *budget) take(now time.Time, r rate, n float64) bool {
	left := b.now(now, r)
	b.left, b.at = left, now
	if left >= n || r.debt > 0 {
		b.left = max(left-n, -r.debt)
	}
	return left >= n
}

// now is what there is.
func (b *budget) now(now time.Time, r rate) float64 {
	if b.at.IsZero() {
		return r.burst
	}
	return min(b.left+now.Sub(b.at).Seconds()*r.perSecond, r.burst)
}

// until is how long it takes until there is enough for one.
func (b *budget) until(now time.Time, r rate) time.Duration {
	missing := 1 - b.now(now, r)
	return max(0, time.Duration(missing/r.perSecond*float64(time.Second)))
}

// bounded remembers something of each of so many. Who comes when it is full takes the
// place of whom nothing was heard of for longest.
type bounded[K comparable, V any] struct {
	max int
	all map[K]*remembered[V]
}

type remembered[V any] struct {
	is    V
	heard time.Time
}

func newBounded[K comparable, V any](most int) bounded[K, V] {
	return bounded[K, V]{most, make(map[K]*remembered[V])}
}

// of is what is remembered of k, which was heard of now.
func (b bounded[K, V]) of(k K, now time.Time) *V {
	r := b.all[k]
	if r == nil {
		if len(b.all) >= b.max {
			b.forget()
		}
		r = new(remembered[V])
		b.all[k] = r
	}
	r.heard = now
	return &r.is
}

// known is what is remembered of k, nil for nothing.
func (b bounded[K, V]) known(k K) *V {
	if r := b.all[k]; r != nil {
		return &r.is
	}
	return nil
}

func (b bounded[K, V]) forget() {
	var oldest K
	var heard time.Time
	for k, r := range b.all {
		if heard.IsZero() || r.heard.Before(heard) {
			oldest, heard = k, r.heard
		}
	}
	delete(b.all, oldest)
}
