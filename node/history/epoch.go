package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// epoch is an earlier run, in recorded time, with the offsets to wall time that its blocks state.
type epoch struct {
	id          uint32
	first, last int64
	stated      []statement // in the order of their sequence, each but once
}

// statement is an offset that a block states.
type statement struct {
	seq    uint64
	offset int64
	unsure bool
}

// state takes what a block says of its epoch.
func (e *epoch) state(h head) {
	e.first, e.last = min(e.first, h.first), max(e.last, h.last)
	i, _ := slices.BinarySearchFunc(e.stated, h.seq, func(s statement, seq uint64) int { return cmp.Compare(s.seq, seq) })
	for _, k := range []int{i - 1, i} { // a clock that was known at an offset was right at it
		if k >= 0 && k < len(e.stated) && e.stated[k].offset == h.offset {
			e.stated[k].unsure = e.stated[k].unsure && h.unsure
			return
		}
	}
	e.stated = slices.Insert(e.stated, i, statement{h.seq, h.offset, h.unsure})
}

func (e *epoch) newest() statement { return e.stated[len(e.stated)-1] }

// endsBy reports whether the epoch has ended by a wall time at an offset, but for clockStep.
func (e *epoch) endsBy(limit, offset int64) bool {
	return e.last+offset <= limit+2*clockStep.Milliseconds()
}

// offset returns the epoch's offset: the newest one that was known and by which it ends at limit at
// the latest, then a guess that does so. Where all are wrong, it ends at limit.
func (e *epoch) offset(limit int64) (offset int64, sure bool) {
	for _, unsure := range []bool{false, true} {
		for _, s := range slices.Backward(e.stated) {
			if s.unsure == unsure && e.endsBy(limit, s.offset) {
				return s.offset, !unsure
			}
		}
	}
	return limit - e.last, true
}

// setEarlier takes over the epochs that were loaded, which end at first as they say.
func (h *History) setEarlier(all map[uint32]*epoch) {
	h.earlier = slices.SortedFunc(maps.Values(all), func(a, b *epoch) int { return cmp.Compare(a.id, b.id) })
	h.resolve()
	h.end = math.MinInt64
	for _, e := range h.earlier {
		h.end = max(h.end, e.last+h.epochs[e.id])
	}
}

// resolve decides about the offsets of the earlier epochs. Each has ended when the next one began, as
// far as the clock of that was known; the present one's is known best.
func (h *History) resolve() {
	limit := int64(math.MaxInt64 / 2)
	if !h.collector.unsure {
		limit = h.collector.wall
	}
	offsets := make(map[uint32]int64, len(h.earlier))
	for _, e := range slices.Backward(h.earlier) {
		offset, sure := e.offset(limit)
		offsets[e.id] = offset
		if limit -= e.last - e.first; sure {
			limit = e.first + offset
		}
	}
	h.epochs = offsets
}

// followClock makes the site's time the wall time of this epoch, also of earlier records. While the
// time was never known, what is recorded now is later than what is stored. The lock is held.
func (h *History) followClock() (now time.Time, known bool) {
	now, known = h.Now()
	c := &h.collector
	wall := now.UnixMilli() - h.now()
	switch {
	case !known && !c.unsure:
		return time.UnixMilli(h.now() + c.wall), false
	case !known && h.earlier != nil:
		wall = max(wall, h.end+1)
	}
	by := wall - c.wall
	stepped := by > clockStep.Milliseconds() || by < -clockStep.Milliseconds()
	if stepped {
		if h.opened {
			h.seal(true) // each tier keeps what was taken for right until now
		}
		c.wall, h.restate = wall, true
		wake(h.wake)
	}
	if stepped || c.unsure == known {
		c.unsure = !known
		h.resolve()
	}
	return now, known
}
