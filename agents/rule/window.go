package rule

import (
	"time"

	"agentsite/agents/rule/expr"
)

// parts is how finely a window moves on: by its length divided by this. What it holds is from
// the last length and up to one part more.
const parts = 60

// longestWindow is what package expr permits.
const longestWindow = 24 * time.Hour

// window sums up the readings of a point over the last length of time, in constant space. It
// is known once the point has been read for as long as the window is.
type window struct {
	Func   expr.WindowFunc
	length time.Duration
	point  int

	began time.Duration // the first reading
	some  bool
	ring  [parts + 1]part
}

// part sums up a part of a window.
type part struct {
	number      int64 // of the part; it is empty if it is another's
	n           int
	sum         float64
	low, high   float64
	first, last float64
}

// number returns the number of the part to which a time belongs. Times before the first Moment
// are those of readings that are older; none of them is older than the longest window.
func (w *window) number(t time.Duration) int64 {
	return int64((t + longestWindow) / (w.length / parts))
}

// at returns the part to which a time belongs, emptied where it held an earlier one.
func (w *window) at(t time.Duration) *part {
	number := w.number(t)
	p := &w.ring[number%(parts+1)]
	if p.number != number {
		*p = part{number: number}
	}
	return p
}

// watch notes that the point is read, or counted, from a time on.
func (w *window) watch(t time.Duration) {
	if !w.some {
		w.some, w.began = true, t
	}
}

// add adds a reading. Readings come in the order of their times.
func (w *window) add(t time.Duration, v float64) {
	w.watch(t)
	p := w.at(t)
	if p.n == 0 {
		p.low, p.high, p.first = v, v, v
	}
	p.n++
	p.sum += v
	p.low, p.high, p.last = min(p.low, v), max(p.high, v), v
}

// count adds an event.
func (w *window) count(t time.Duration) {
	w.watch(t)
	w.at(t).n++
}

// value returns the window's value now.
func (w *window) value(now time.Duration) (v float64, known bool) {
	if !w.some || now-w.began < w.length {
		return 0, false
	}
	newest := w.number(now)
	var n int
	var sum, low, high, first, last float64
	for number := newest - parts; number <= newest; number++ {
		if number < 0 {
			continue
		}
		p := &w.ring[number%(parts+1)]
		if p.number != number || p.n == 0 {
			continue
		}
		if n == 0 {
			low, high, first = p.low, p.high, p.first
		}
		n += p.n
		sum += p.sum
		low, high, last = min(low, p.low), max(high, p.high), p.last
	}
	switch {
	case w.Func == expr.Count:
		return float64(n), true
	case n == 0:
		return 0, false
	case w.Func == expr.Mean:
		return sum / float64(n), true
	case w.Func == expr.Least:
		return low, true
	case w.Func == expr.Greatest:
		return high, true
	}
	return last - first, true
}
