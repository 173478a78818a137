package history

import (
	"cmp"
	"slices"
	"time"

	"agentsite/device"
)

// Readings calls yield for the stored readings of points in a range of wall time, until yield
// returns false. It passes the index of the point, the time and the value, none where that is
// unknown. These are raw readings where there are some, with 0 for every, and otherwise the last
// one of each minute, stamped with the minute's end. The readings of a point are ordered by time.
// Those of different points are in the order of their blocks, which differs from that of time only
// by moments. Where the clock was set back, later readings for the same time are left out.
//
// For a point that is no measurement, the first reading is its value at from. Unless it is an
// event, it has no value after the last write of a run of the site.
//
// Readings holds a block in memory, not the range. It does not block recording.
func (h *History) Readings(points []string, from, to time.Time, yield func(point int, at time.Time, v device.Value, every time.Duration) bool) {
	r := reader{from: clampTime(from), to: clampTime(to), yield: yield, going: true}
	r.snapshot(h, points)
	for i, address := range points {
		if !r.holds(i) || !r.going {
			continue
		}
		if c, ok := h.ValueAt(address, from); ok && c.At.Before(from) {
			r.send(past{point: i, at: r.from, value: c.Value})
		}
	}
	r.read()
	r.imported(r.to)
}

// past is one stored reading.
type past struct {
	point int
	at    int64        // wall time
	value device.Value // none where it is not known
	every time.Duration
}

// reader is one call of Readings.
type reader struct {
	view
	from, to int64
	yield    func(int, time.Time, device.Value, time.Duration) bool
	going    bool

	keys  map[string]int // points by the keys of their series
	lives []series

	all    []past  // of one block
	newest []int64 // by point, what was yielded
	known  []bool  // the newest has a value
	epoch  uint32  // of the last block; 0 for none
	end    int64   // of what is stored of it, as wall time

	past []past // imported ones of a day
	day  int64  // up to which they were taken
}

// snapshot takes a snapshot of the history.
func (r *reader) snapshot(h *History, points []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followClock()
	r.view = view{disk: h.disk, epochs: h.epochs, current: h.collector}
	for i := range h.tiers {
		r.tiers[i] = h.tiers[i].view()
	}
	r.keys = make(map[string]int, len(points))
	r.lives, r.newest, r.known = make([]series, len(points)), make([]int64, len(points)), make([]bool, len(points))
	for i, address := range points {
		r.newest[i] = r.from - 1
		r.lives[i].key, r.lives[i].kind = address, device.KindMeasurement
		if s := h.points[address]; s != nil {
			r.lives[i] = series{key: s.key, kind: s.kind, samples: slices.Clone(s.samples), changes: slices.Clone(s.changes), inRaw: s.inRaw}
			if !h.opened { // minutes go back further
				r.lives[i].minutes, r.lives[i].inRaw = slices.Clone(s.minutes), 0
			}
		}
		r.keys[r.lives[i].key] = i
	}
	r.day = r.from
}

// holds reports whether a point has a value until the next one.
func (r *reader) holds(i int) bool {
	return r.lives[i].kind != device.KindMeasurement && r.lives[i].kind != device.KindEvent
}

// read goes through the blocks, the older ones of minutes first, and records that are in none yet.
func (r *reader) read() {
	done := uint64(0) // the sequence up to which the minutes have it
	for _, i := range []int{minutes, raw} {
		begin, limit := done, ^uint64(0)
		if i == minutes {
			limit = r.tiers[raw].start()
		}
		r.tiers[i].each(r.disk, func(k head) bool {
			if k.from < begin || k.from >= limit || !r.going {
				return false
			}
			done = max(done, k.seq)
			return r.touches(k, r.from, r.to)
		}, func(k head, payload []byte) {
			offset := r.offset(k.epoch)
			parsePayload(payload, "", func(e entry) bool {
				if point, ok := r.keys[e.key]; ok {
					r.entry(point, e, k.first, offset)
				}
				return true
			})
			r.flush(k.epoch, k.last+offset)
		})
	}
	offset := r.current.offset()
	for i := range r.lives {
		s := &r.lives[i]
		for _, b := range s.minutes {
			if len(s.samples) == 0 || b.t < s.samples[0].t-msMinute {
				r.summary(i, b, r.current.wall)
			}
		}
		for _, x := range s.samples {
			r.sample(i, x, r.current.wall)
		}
		for _, c := range s.changes[s.inRaw:] {
			r.change(i, r.absolute(c), offset)
		}
	}
	r.flush(r.current.epoch, r.current.now+r.current.wall)
}

// entry decodes a series of a block.
func (r *reader) entry(point int, e entry, first, offset int64) {
	switch e.form {
	case formSamples:
		decodeSamples(e.data, first, func(x sample) bool { r.sample(point, x, offset); return true })
	case formBuckets:
		decodeBuckets(e.data, first, func(b bucket) bool { r.summary(point, b, offset); return true })
	case formChanges:
		decodeChanges(e.data, first, func(c change) bool { r.change(point, c, offset); return true })
	}
}

func (r *reader) sample(point int, x sample, offset int64) {
	s := past{point: point, at: x.t + offset}
	if x.good() {
		s.value = device.Number(x.v)
	}
	r.all = append(r.all, s)
}

func (r *reader) summary(point int, b bucket, offset int64) {
	r.all = append(r.all, stored(point, b, offset))
}

// stored returns the last reading of a minute. Of several it is not known when that was: the end
// of the minute is never before it.
func stored(point int, b bucket, offset int64) past {
	wall := b.t + offset
	if b.good+b.bad > 1 {
		wall = floor(wall, msMinute) + msMinute - 1
	}
	s := past{point: point, at: wall, every: time.Minute}
	if b.good > 0 {
		s.value = device.Number(b.last)
	}
	return s
}

func (r *reader) change(point int, c change, offset int64) {
	if !c.held {
		r.all = append(r.all, past{point: point, at: c.t + offset, value: c.Value})
	}
}

// flush yields the decoded readings of a block of an epoch, whose records end at end.
func (r *reader) flush(epoch uint32, end int64) {
	if epoch != r.epoch {
		if r.epoch != 0 {
			r.lose()
		}
		r.epoch, r.end = epoch, end
	}
	r.end = max(r.end, end)
	slices.SortStableFunc(r.all, func(a, b past) int { return cmp.Compare(a.at, b.at) })
	for _, s := range r.all {
		r.imported(s.at)
		r.send(s)
	}
	r.all = r.all[:0]
}

// lose yields unknown values for the points of an epoch at its end.
func (r *reader) lose() {
	for i := range r.lives {
		if r.holds(i) && r.known[i] {
			r.send(past{point: i, at: max(r.end, r.newest[i])})
		}
	}
}

func (r *reader) send(s past) {
	if !r.going || s.at < max(r.newest[s.point], r.from) || s.at >= r.to {
		return
	}
	r.newest[s.point], r.known[s.point] = s.at, !s.value.IsZero()
	r.going = r.yield(s.point, time.UnixMilli(s.at), s.value, s.every)
}

// imported yields imported readings before a moment, and after the last one.
func (r *reader) imported(until int64) {
	if len(r.tiers[imported].segments)+len(r.tiers[imported].unwritten) == 0 {
		return
	}
	for r.going {
		for len(r.past) > 0 && r.past[0].at < until {
			r.send(r.past[0])
			r.past = r.past[1:]
		}
		if len(r.past) > 0 || r.day >= min(until, r.to) {
			return
		}
		first, end := r.day, r.day+24*msHour
		r.day, r.past = end, nil
		r.tiers[imported].each(r.disk, func(k head) bool { return r.touches(k, first, end) }, func(k head, payload []byte) {
			parsePayload(payload, "", func(e entry) bool {
				if point, ok := r.keys[e.key]; ok && e.form == formBuckets {
					decodeBuckets(e.data, k.first, func(b bucket) bool {
						if b.t >= first && b.t < end {
							r.past = append(r.past, stored(point, b, 0))
						}
						return true
					})
				}
				return true
			})
		})
		slices.SortStableFunc(r.past, func(a, b past) int { return cmp.Compare(a.at, b.at) })
	}
}
