package history

import (
	"cmp"
	"slices"
	"time"

	"agentsite/device"
)

// Mark is a place in the records of a point: after all of earlier runs, all of Run before At, and the first N at At.
type Mark struct {
	Run uint32 // the epoch; 0 for a history in memory only
	At  int64  // recorded time in ms
	N   uint16
}

// Entry is a raw reading or a change, as it was recorded.
type Entry struct {
	Point  int // the index
	Mark       // after it
	Wall   time.Time
	Sure   bool         // the wall time was known
	Value  device.Value // none where it is not known
	Holder string       // of an output
	Cause  string
}

// disorder is the longest by which a record of another point can be earlier than one before it.
const disorder = 5000 // ms

// Marks returns the places after the newest records of points, and the place of now. A record can come later than it was
// made, but not by more than twice disorder.
func (h *History) Marks(points []string) (all []Mark, now Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.collector
	now = Mark{Run: c.epoch, At: h.now() + c.base}
	all = make([]Mark, len(points))
	for i, address := range points {
		all[i] = Mark{Run: c.epoch, At: max(c.base, now.At-2*disorder)}
		if s := h.points[address]; s != nil && s.atLast > 0 && s.last+c.base >= all[i].At {
			all[i].At, all[i].N = s.last+c.base, s.atLast
		}
	}
	return all, now
}

// After calls yield for the records of points after their marks, until yield returns false. Those of a point are in the
// order in which they came, those of different points in that of their recorded time. It reports whether these are
// all: records are missing that were never stored, were removed, or were left out of too many. Those of an earlier run
// than the present one are never known to be all.
func (h *History) After(points []string, marks []Mark, yield func(Entry) bool) (whole bool) {
	f := follow{marks: marks, counts: slices.Clone(marks), yield: yield, going: true, whole: true}
	f.snapshot(h, points)
	f.read()
	return f.whole
}

// follow is one call of After.
type follow struct {
	view
	keys   map[string]int // points by the keys of their series
	lives  []series
	marks  []Mark
	counts []Mark // after the last record that was found, told or not
	from   Mark   // the first of the marks
	all    []Entry
	newest Mark
	yield  func(Entry) bool
	going  bool
	whole  bool
}

func (f *follow) snapshot(h *History, points []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followClock()
	f.view = view{disk: h.disk, epochs: h.epochs, current: h.collector}
	f.tiers[raw] = h.tiers[raw].view()
	f.keys, f.lives = make(map[string]int, len(points)), make([]series, len(points))
	for i, address := range points {
		f.counts[i].N = 0
		if m := f.marks[i]; i == 0 || before(m, f.from) {
			f.from = m
		}
		f.whole = f.whole && f.marks[i].Run == h.collector.epoch
		s := h.points[address]
		if s == nil {
			continue
		}
		f.keys[s.key] = i
		f.lives[i] = series{kind: s.kind, samples: slices.Clone(s.samples), changes: slices.Clone(s.changes[s.inRaw:])}
		if s.dropped && s.droppedAt+h.collector.base > f.marks[i].At {
			f.whole = false
		}
	}
}

func before(a, b Mark) bool { return a.Run < b.Run || a.Run == b.Run && a.At < b.At }

// read goes through the raw blocks, and the records that are in none yet.
func (f *follow) read() {
	seq, known := uint64(0), false // of the block before
	f.tiers[raw].each(f.disk, func(k head) bool {
		late := k.epoch > f.from.Run || k.epoch == f.from.Run && k.last >= f.from.At
		first := k.epoch > f.from.Run || k.first > f.from.At
		if late && first && (known && k.from != seq || !known && k.from > 0) {
			f.whole = false
		}
		seq, known = k.seq, true
		return late && f.going
	}, func(k head, payload []byte) {
		offset := f.offset(k.epoch)
		parsePayload(payload, "", func(e entry) bool {
			point, ok := f.keys[e.key]
			if !ok {
				return true
			}
			switch e.form {
			case formSamples:
				decodeSamples(e.data, k.first, func(x sample) bool { f.sample(point, k.epoch, x, offset, !k.unsure); return true })
			case formChanges:
				decodeChanges(e.data, k.first, func(c change) bool { f.change(point, k.epoch, c, offset, !k.unsure); return true })
			}
			return true
		})
		f.flush(false)
	})
	c := &f.current
	for i := range f.lives {
		for _, x := range f.lives[i].samples {
			x.t += c.base
			f.sample(i, c.epoch, x, c.offset(), !c.unsure)
		}
		for _, x := range f.lives[i].changes {
			f.change(i, c.epoch, f.absolute(x), c.offset(), !c.unsure)
		}
	}
	f.flush(true)
}

func (f *follow) sample(point int, run uint32, x sample, offset int64, sure bool) {
	e := Entry{Point: point, Mark: Mark{Run: run, At: x.t}, Wall: time.UnixMilli(x.t + offset), Sure: sure}
	if x.good() {
		e.Value = device.Number(x.v)
	}
	f.add(e)
}

func (f *follow) change(point int, run uint32, c change, offset int64, sure bool) {
	if !c.held {
		e := Entry{Point: point, Mark: Mark{Run: run, At: c.t}, Wall: time.UnixMilli(c.t + offset), Sure: sure}
		e.Value, e.Holder, e.Cause = c.Value, c.Holder, c.Cause
		f.add(e)
	}
}

// add takes a record, unless it is before the mark of its point.
func (f *follow) add(e Entry) {
	if n := &f.counts[e.Point]; n.Run == e.Run && n.At == e.At {
		n.N++
	} else {
		*n = Mark{Run: e.Run, At: e.At, N: 1}
	}
	e.N = f.counts[e.Point].N
	if m := f.marks[e.Point]; before(e.Mark, m) || !before(m, e.Mark) && e.N <= m.N {
		return
	}
	if before(f.newest, e.Mark) {
		f.newest = e.Mark
	}
	f.all = append(f.all, e)
}

// flush yields the records that none can come before any more, or all.
func (f *follow) flush(all bool) {
	slices.SortStableFunc(
		f.all, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.At, b.At)) },
	)
	n := 0
	for _, e := range f.all {
		if !all && e.Run == f.newest.Run && e.At > f.newest.At-disorder {
			break
		}
		if f.going = f.going && f.yield(e); !f.going {
			break
		}
		n++
	}
	f.all = slices.Delete(f.all, 0, n)
}
