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
	part   time.Duration // of it
	point  int

	began time.Duration // the first reading
	some  bool
	now   float64       // the point's value,
	known bool          // if it has one,
	upTo  time.Duration // of which the parts have what was until then
	// number is of the part to which upTo belongs, place where that is in the ring, and end when it
	// ends: a division takes long on a small processor. 0 is for none yet.
	number int64
	place  int
	end    time.Duration
	ring   []part // parts + 1
}

// part sums up a part of a window.
type part struct {
	number int64 // of the part; what is here is of no other one. 0 is no part's.
	// sum is of the values, each times its length, for a mean; the lowest or the highest value; the
	// first value for a change; or the number of what is counted.
	sum    float64
	length float64 // in nanoseconds, for a mean
}

func newWindow(f expr.WindowFunc, length time.Duration, point int) window {
	return window{Func: f, length: length, part: length / parts, point: point, ring: make([]part, parts+1)}
}

// numberAt returns the number of the part to which a time belongs. Times before the first Moment
// are those of readings that are older; none of them counts that is older than the longest
// window.
func (w *window) numberAt(t time.Duration) int64 { return 1 + int64((t+longestWindow)/w.part) }

// start returns when a part begins.
func (w *window) start(number int64) time.Duration {
	return time.Duration(number-1)*w.part - longestWindow
}

// placeOf returns where a part is in the ring.
func placeOf(number int64) int { return int(number % (parts + 1)) }

// after returns the place of the part after the one at a place.
func after(place int) int {
	if place == parts {
		return 0
	}
	return place + 1
}

// at returns a part at its place, emptied where that had an earlier one, and whether it is new.
func (w *window) at(number int64, place int) (p *part, fresh bool) {
	p = &w.ring[place]
	if fresh = p.number != number; fresh {
		*p = part{number: number}
	}
	return p, fresh
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
	if w.number == 0 || to >= w.end+w.part { // parts were left out
		w.upTo = max(w.upTo, w.start(w.numberAt(to)-parts))
		w.number = w.numberAt(w.upTo)
		w.place, w.end = placeOf(w.number), w.start(w.number+1)
	}
	for w.upTo >= w.end { // nothing was known
		w.advance()
	}
	for ; to >= w.end; w.advance() {
		w.add(w.end)
	}
	w.add(to)
}

// advance goes on to the next part.
func (w *window) advance() { w.number, w.place, w.end = w.number+1, after(w.place), w.end+w.part }

// add takes the present value into the part up to a time in it.
func (w *window) add(to time.Duration) {
	p, fresh := w.at(w.number, w.place)
	switch {
	case w.Func == expr.Mean:
		if to > w.upTo {
			length := float64(to - w.upTo)
			p.sum, p.length = p.sum+w.now*length, p.length+length
		}
	case fresh, w.Func == expr.Least && w.now < p.sum, w.Func == expr.Greatest && w.now > p.sum:
		p.sum = w.now
	}
	w.upTo = to
}

// count adds an event.
func (w *window) count(t time.Duration) {
	number := w.numberAt(t)
	p, _ := w.at(number, placeOf(number))
	p.sum++
}

// value returns the window's value now.
func (w *window) value(now time.Duration) (v float64, known bool) {
	w.extend(now)
	if !w.some || now-w.began < w.length {
		return 0, false
	}
	newest, place := w.number, w.place
	if !w.known || w.Func == expr.Count {
		newest = w.numberAt(now)
		place = placeOf(newest)
	}
	var all part
	for number := newest - parts; number <= newest; number++ {
		place = after(place) // of the newest at first
		p := &w.ring[place]
		if p.number != number {
			continue
		}
		switch {
		case w.Func == expr.Mean || w.Func == expr.Count:
			all.sum, all.length = all.sum+p.sum, all.length+p.length
		case all.number == 0, w.Func == expr.Least && p.sum < all.sum, w.Func == expr.Greatest && p.sum > all.sum:
			all.sum = p.sum
		}
		all.number = number
	}
	// The present value, or the last one before there was none, is the last of the newest part.
	switch {
	case w.Func == expr.Count:
		return all.sum, true
	case all.number == 0:
		return 0, false
	case w.Func == expr.Mean && all.length == 0:
		return w.now, true
	case w.Func == expr.Mean:
		return all.sum / all.length, true
	case w.Func == expr.Change:
		return w.now - all.sum, true
	}
	return all.sum, true
}
