package rule

import (
	"math"
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
	some   bool          // there was a reading,
	known  bool          // and the point has a value now
	point  int32         // of the Machine
	place  int32         // of the part number in the ring
	length time.Duration // of the window
	part   time.Duration // of a part
	began  time.Duration // the first reading
	now    float64       // the point's value, if it is known
	upTo   time.Duration // the parts have what was until then
	// number is of the part to which upTo belongs, and end when it ends: a division takes long on a
	// small processor. 0 is for none yet.
	number int64
	end    time.Duration
	newest int64 // the last part in the ring, which has those before it as far as they fit
	// ring is the sums of the parts, NaN where nothing was: of the values, each times its length, for a
	// mean; the lowest or the highest value; the first value for a change; or the number of what is
	// counted. For a mean the lengths in nanoseconds follow.
	ring []float64
}

// slots is the number of parts in a ring: those of a window, and the current one.
const slots = parts + 1

func newWindow(of expr.Window) window {
	w := window{Func: of.Func, point: int32(of.Point), length: of.Length, part: of.Length / parts, ring: make([]float64, slots)}
	if of.Func == expr.Mean {
		w.ring = make([]float64, 2*slots)
	}
	for i := range slots {
		w.ring[i] = math.NaN()
	}
	return w
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
func placeOf(number int64) int32 { return int32(number % slots) }

// after returns the place of the part after the one at a place.
func after(place int32) int32 {
	if place == parts {
		return 0
	}
	return place + 1
}

// turn has the ring go on to a part, and returns its place. The parts in between have nothing.
func (w *window) turn(number int64) (place int32) {
	place = placeOf(number)
	if number <= w.newest {
		return place
	}
	w.newest = max(w.newest, number-slots)
	for at := placeOf(w.newest); w.newest < number; w.newest++ {
		at = after(at)
		w.ring[at] = math.NaN()
	}
	return place
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
	if w.Func != expr.Mean { // to which a value adds nothing before it has lasted
		w.extend(w.upTo)
	}
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
	length := float64(to - w.upTo)
	w.upTo = to
	if w.number <= w.newest-slots { // it has left the ring
		return
	}
	if w.number > w.newest {
		w.turn(w.number)
	}
	sum := &w.ring[w.place]
	switch fresh := math.IsNaN(*sum); {
	case w.Func == expr.Mean:
		all := &w.ring[slots+w.place]
		if fresh {
			*sum, *all = 0, 0
		}
		if length > 0 {
			*sum, *all = *sum+w.now*length, *all+length
		}
		if math.IsNaN(*sum) { // of numbers out of range, which is not nothing
			*sum = math.Inf(1)
		}
	case fresh, w.Func == expr.Least && w.now < *sum, w.Func == expr.Greatest && w.now > *sum:
		*sum = w.now
	}
}

// count adds an event.
func (w *window) count(t time.Duration) {
	number := w.numberAt(t)
	if number <= w.newest-slots {
		return
	}
	n := &w.ring[w.turn(number)]
	if math.IsNaN(*n) {
		*n = 0
	}
	*n++
}

// value returns the window's value now.
func (w *window) value(now time.Duration) (v float64, known bool) {
	w.extend(now)
	if !w.some || now-w.began < w.length {
		return 0, false
	}
	place := w.place
	if w.newest != w.number || !w.known || w.Func == expr.Count {
		place = w.turn(w.numberAt(now))
	}
	some := false
	var all, length float64
	for range slots {
		place = after(place) // of the newest at first
		sum := w.ring[place]
		switch {
		case math.IsNaN(sum):
			continue
		case w.Func == expr.Mean:
			all, length = all+sum, length+w.ring[slots+place]
		case w.Func == expr.Count:
			all += sum
		case !some, w.Func == expr.Least && sum < all, w.Func == expr.Greatest && sum > all:
			all = sum
		}
		some = true
	}
	// The present value, or the last one before there was none, is the last of the newest part.
	switch {
	case w.Func == expr.Count:
		return all, true
	case !some:
		return 0, false
	case w.Func == expr.Mean && length == 0:
		return w.now, true
	case w.Func == expr.Mean:
		return all / length, true
	case w.Func == expr.Change:
		return w.now - all, true
	}
	return all, true
}
