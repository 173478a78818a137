package guard

import "time"

// bins divide a window. What was used counts until its whole bin has left the window,
// so that a window is up to two sixtieths stricter than its policy, and never laxer.
const bins = 60

// window is the sum of what was used within any stretch of a length, in bounded
// memory.
//
// What was used before a start nobody knows, and a start credits nothing: all of the
// limit counts as used, evenly over the window before it. So a start never makes a
// burst possible, however often it comes, and an output is of use again after a
// sixtieth of the window and not only after all of it. The price: of a window with a
// start in it, up to twice the limit can have been used.
type window struct {
	limit int64
	bin   time.Duration
	last  int64 // the newest bin that anything was used in
	used  [bins + 1]int64
}

// newWindow begins now. The limit is a multiple of bins, or so large that the
// rounding up does not matter.
func newWindow(now Time, length time.Duration, limit int64) *window {
	w := &window{limit: limit, bin: (length + bins - 1) / bins}
	w.last = w.number(now)
	for n := w.last - bins + 1; n <= w.last; n++ {
		w.used[n%(bins+1)] = (limit + bins - 1) / bins
	}
	return w
}

// number counts bins, so that none of those before Time 0 has a negative one.
func (w *window) number(t Time) int64 { return int64(t/w.bin) + bins }

// start is when a bin begins.
func (w *window) start(number int64) Time { return Time(number-bins) * w.bin }

// use notes that something was used in the bin of t, or in the oldest where that has
// left the window. Times do not go back by more than a window.
func (w *window) use(t Time, amount int64) {
	n := max(w.number(t), w.last-bins)
	for w.last < n {
		if w.last < n-bins-1 {
			w.last = n - bins - 1 // the others would be cleared twice
		}
		w.last++
		w.used[w.last%(bins+1)] = 0
	}
	w.used[n%(bins+1)] += amount
}

// span notes the time from one moment to another.
func (w *window) span(from, to Time) {
	for n := max(w.number(from), w.number(to)-bins); n <= w.number(to); n++ {
		a, b := max(from, w.start(n)), min(to, w.start(n+1))
		if b > a {
			w.use(a, int64(b-a))
		}
	}
}

// left is what may still be used at now; it can be less than nothing.
func (w *window) left(now Time) int64 {
	left := w.limit
	for n := max(w.number(now), w.last) - bins; n <= w.last; n++ {
		left -= w.used[n%(bins+1)]
	}
	return left
}

// outside is the first moment that no longer counts at now.
func (w *window) outside(now Time) Time { return w.start(w.number(now) - bins) }

// wait is how long it takes until an amount may be used, where nothing else is.
func (w *window) wait(now Time, amount int64) time.Duration {
	left := w.left(now)
	n := max(w.number(now), w.last) - bins
	for ; left < amount && n <= w.last; n++ {
		left += w.used[n%(bins+1)]
		if left >= amount {
			return w.start(n+bins+1) - now
		}
	}
	return 0
}
