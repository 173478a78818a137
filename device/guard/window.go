package guard

import "time"

// bins divide a window. A use counts until its whole bin has left the window. So a window is up to
// two sixtieths stricter than its policy, and never less strict.
const bins = 60

// window is the sum of uses within a sliding window, in constant memory.
//
// The uses before a start are unknown, so the limit counts as used up, evenly over the window
// before the start. So restarts never permit a burst, and an output is usable again after a
// sixtieth of the window. The price: in a window with a start, up to twice the limit can be
// used.
type window struct {
	limit int64
	first int64 // the bin of the start
	bin   time.Duration
	last  int64 // the newest bin with a use
	used  [bins + 1]int64
}

// newWindow returns a window that begins now. The limit is a multiple of bins, or so large
// that rounding does not matter.
func newWindow(now Time, length time.Duration, limit int64) *window {
	w := &window{limit: limit, bin: (length + bins - 1) / bins}
	w.last = w.number(now)
	w.first = w.last
	for n := w.last - bins + 1; n <= w.last; n++ {
		w.used[n%(bins+1)] = (limit + bins - 1) / bins
	}
	return w
}

// number returns the number of the bin of t, which is not negative even before Time 0.
func (w *window) number(t Time) int64 { return int64(t/w.bin) + bins }

// start returns when a bin begins.
func (w *window) start(number int64) Time { return Time(number-bins) * w.bin }

// use adds a use to the bin of t, or to the oldest bin if that has left the window. Times do
// not go back by more than a window.
func (w *window) use(t Time, amount int64) {
	n := max(w.number(t), w.last-bins)
	for w.last < n {
		if w.last < n-bins-1 {
			w.last = n - bins - 1 // do not clear bins twice
		}
		w.last++
		w.used[w.last%(bins+1)] = 0
	}
	w.used[n%(bins+1)] += amount
}

// span adds the time between two moments.
func (w *window) span(from, to Time) {
	for n := max(w.number(from), w.number(to)-bins); n <= w.number(to); n++ {
		a, b := max(from, w.start(n)), min(to, w.start(n+1))
		if b > a {
			w.use(a, int64(b-a))
		}
	}
}

// left returns the unused rest at now; it can be negative.
func (w *window) left(now Time) int64 {
	left := w.limit
	for n := max(w.number(now), w.last) - bins; n <= w.last; n++ {
		left -= w.used[n%(bins+1)]
	}
	return left
}

// assumed returns how much of the uses at now is not known, but counts since the start.
func (w *window) assumed(now Time) int64 {
	return min(bins, max(0, w.first-(w.number(now)-bins)+1)) * ((w.limit + bins - 1) / bins)
}

// outside returns the first moment that no longer counts at now.
func (w *window) outside(now Time) Time { return w.start(w.number(now) - bins) }

// wait returns how long it takes until an amount can be used, if nothing else is used.
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
