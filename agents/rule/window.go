package rule

import (
	"time"

	"agentsite/agents/rule/expr"
)

// parts is how finely a window moves on: by its length divided by this. What it has is from
// the last length and up to one part more: from the beginning of a part, to now.
const parts = 60

// longestWindow is what package expr permits.
const longestWindow = 24 * time.Hour

// window sums up a point over the last length of time, in constant space. A value counts for
// as long as it was the point's, as a site tells values as they change. A window is known once
// the point has been known for as long as the window is, whatever gaps there were since.
type window struct {
	Func   expr.WindowFunc
	length time.Duration
	point  int

	began time.Duration // the first reading
	some  bool
	now   float64       // the point's value,
	known bool          // if it has one,
	upTo  time.Duration // of which the parts have what was until then
	ring  [parts + 1]part
}

// part sums up a part of a window.
type part struct {
	number      int64 // of the part; it is empty if it is another's
	n           int   // of events, or of values
	length      float64
	sum         float64 // of the values, each times its length in seconds
	low, high   float64
	first, last float64
}

// number returns the number of the part to which a time belongs. Times before the first Moment
// are those of readings that are older; none of them counts that is older than the longest
// window.
func (w *window) number(t time.Duration) int64 {
	return int64((t + longestWindow) / (w.length / parts))
}

// start returns when a part begins.
func (w *window) start(number int64) time.Duration {
	return time.Duration(number)*(w.length/parts) - longestWindow
}

// at returns a part, emptied where it was an earlier one.
func (w *window) at(number int64) *part {
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

// hold has the point have a value from t on, or none from now on.
func (w *window) hold(t, now time.Duration, v float64, known bool) {
	if !known {
		w.extend(now)
		w.known = false
		return
	}
	w.watch(t)
	w.extend(min(t, now))
	w.upTo = min(max(w.upTo, t), now)
	w.now, w.known = v, true
	w.extend(w.upTo)
}

// extend takes the present value into the parts up to a time.
func (w *window) extend(to time.Duration) {
	if !w.known || to < w.upTo {
		return
	}
	newest := w.number(to)
	w.upTo = max(w.upTo, w.start(newest-parts))
	for number := w.number(w.upTo); number <= newest; number++ {
		p, end := w.at(number), min(to, w.start(number+1))
		if p.n == 0 {
			p.low, p.high, p.first = w.now, w.now, w.now
		}
		p.n++
		p.low, p.high, p.last = min(p.low, w.now), max(p.high, w.now), w.now
		length := (end - w.upTo).Seconds()
		p.sum, p.length, w.upTo = p.sum+w.now*length, p.length+length, end
	}
}

// count adds an event.
func (w *window) count(t time.Duration) { w.at(w.number(t)).n++ }

// value returns the window's value now.
func (w *window) value(now time.Duration) (v float64, known bool) {
	w.extend(now)
	if !w.some || now-w.began < w.length {
		return 0, false
	}
	newest := w.number(now)
	var all part
	for number := newest - parts; number <= newest; number++ {
		p := &w.ring[number%(parts+1)]
		if p.number != number || p.n == 0 {
			continue
		}
		if all.n == 0 {
			all.low, all.high, all.first = p.low, p.high, p.first
		}
		all.n += p.n
		all.length += p.length
		all.sum += p.sum
		all.low, all.high, all.last = min(all.low, p.low), max(all.high, p.high), p.last
	}
	switch {
	case w.Func == expr.Count:
		return float64(all.n), true
	case all.n == 0:
		return 0, false
	case w.Func == expr.Mean && all.length == 0:
		return all.last, true
	case w.Func == expr.Mean:
		return all.sum / all.length, true
	case w.Func == expr.Least:
		return all.low, true
	case w.Func == expr.Greatest:
		return all.high, true
	}
	return all.last - all.first, true
}
