package history

import (
	"math"
	"slices"
	"sort"
	"time"

	"agentsite/device"
)

// Query asks for the steps of a measurement.
type Query struct {
	Address  string
	From, To time.Time
	Step     time.Duration  // of whole milliseconds; 0 for a round length
	Steps    int            // the most with a Step of 0, and one more where the first one is cut; 0 for 100
	Location *time.Location // whose midnight steps are aligned to; nil for UTC
}

// maxSteps limits the steps of a query.
const maxSteps = 5000

// Query returns the steps that have readings, oldest first. The first step contains From, and the
// last one ends at To or after it. Steps shorter than a day begin at multiples of their length
// after local midnight, others at local midnight.
func (h *History) Query(q Query) ([]device.Summary, error) {
	bounds, err := q.bounds()
	if err != nil {
		return nil, err
	}
	return h.steps(q.Address, bounds, suits(bounds, q.length())), nil
}

// wholeMinutes is when the last zone, Liberia's, came to whole minutes from UTC. Before, steps of
// minutes are not a reason to read all that is raw.
var wholeMinutes = time.Date(1972, 1, 8, 0, 0, 0, 0, time.UTC).UnixMilli()

// suits returns the coarsest tier whose periods do not cross bounds.
func suits(bounds []int64, step time.Duration) int {
	best := hours
	for _, b := range bounds {
		if best == hours && floor(b, msHour) != b {
			best = minutes
		}
		if floor(b, msMinute) != b && (b > wholeMinutes || step%time.Minute != 0) {
			return raw
		}
	}
	return best
}

// steps aggregates the records between bounds, in Unix ms.
func (h *History) steps(address string, bounds []int64, finest int) []device.Summary {
	all, lasts := make([]bucket, len(bounds)-1), make([]int64, len(bounds)-1)
	i := 0
	find := func(wall int64) bool {
		if wall < bounds[0] || wall >= bounds[len(bounds)-1] {
			return false
		}
		if wall < bounds[i] || wall >= bounds[i+1] {
			if i+2 < len(bounds) && wall >= bounds[i+1] && wall < bounds[i+2] {
				i++
			} else {
				i = sort.Search(len(bounds), func(k int) bool { return bounds[k] > wall }) - 1
			}
		}
		return true
	}
	v := h.view(address)
	v.read(bounds[0], bounds[len(bounds)-1], finest, hours, func(wall int64, b bucket) bool {
		if find(wall) {
			if all[i].merge(b); b.good > 0 {
				lasts[i] = wall
			}
		}
		return true
	})
	v.readImported(bounds[0], bounds[len(bounds)-1], func(b bucket) {
		if find(b.t) { // in any order
			last := all[i].last
			if all[i].merge(b); b.t < lasts[i] {
				all[i].last = last
			} else {
				lasts[i] = b.t
			}
		}
	})
	var steps []device.Summary
	for i, b := range all {
		if b.good == 0 && b.bad == 0 {
			continue
		}
		s := device.Summary{At: time.UnixMilli(bounds[i]), End: time.UnixMilli(bounds[i+1]), Count: int(b.good + b.bad), Good: int(b.good)}
		if b.good > 0 {
			s.Min, s.Mean, s.Max, s.Last = b.min, b.mean(), b.max, b.last
		}
		steps = append(steps, s)
	}
	return steps
}

// Samples calls yield for the raw readings of a measurement in a range of wall time, in recorded
// order, until yield returns false. It yields nothing where only minutes or hours are left.
func (h *History) Samples(address string, from, to time.Time, yield func(at time.Time, value float64, good bool) bool) {
	first, end := clampTime(from), clampTime(to)
	v := h.view(address)
	v.read(first, end, raw, raw, func(wall int64, b bucket) bool {
		if wall < first || wall >= end {
			return true
		}
		return yield(time.UnixMilli(wall), b.last, b.good > 0)
	})
}

// view is a snapshot of the history, with a copy of the collected values of one point.
type view struct {
	disk    disk
	tiers   [tiers]tierView
	epochs  map[uint32]int64
	current collector // without its series
	live    series    // with its key
}

func (h *History) view(address string) (v view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followClock()
	v = view{disk: h.disk, epochs: h.epochs, current: h.collector, live: series{key: address}}
	for i := range h.tiers {
		v.tiers[i] = h.tiers[i].view()
	}
	if s := h.points[address]; s != nil {
		v.live = *s
		v.live.samples, v.live.minutes, v.live.hours, v.live.changes = slices.Clone(s.samples), slices.Clone(s.minutes), slices.Clone(s.hours), slices.Clone(s.changes)
	}
	return v
}

// offset returns that of an epoch.
func (v *view) offset(epoch uint32) int64 {
	if epoch == v.current.epoch {
		return v.current.offset()
	}
	return v.epochs[epoch]
}

// touches reports whether a block has entries of a range of wall time.
func (v *view) touches(h head, from, to int64) bool {
	offset := v.offset(h.epoch)
	return h.first+offset < to && h.last+offset >= from
}

// read calls yield for the site's own readings of a measurement, in recorded order, with their wall
// time in Unix ms, until yield returns false. It begins before from and ends after to. Where the
// finest tier has nothing left, it reads the coarser ones.
func (v *view) read(from, to int64, finest, coarsest int, yield func(wall int64, b bucket) bool) {
	going := true
	done := uint64(0) // the sequence up to which coarser tiers have it
	for i := coarsest; i >= finest && going; i-- {
		limit := uint64(math.MaxUint64)
		if i > finest {
			limit = v.tiers[i-1].start()
		}
		begin, offset := done, int64(0)
		took := func(wall int64, b bucket) bool {
			going = going && yield(wall, b)
			return going
		}
		v.tiers[i].each(v.disk, func(k head) bool {
			if k.from < begin || k.from >= limit || !going {
				return false
			}
			done = max(done, k.seq)
			return v.touches(k, from, to)
		}, func(k head, payload []byte) {
			offset = v.offset(k.epoch)
			parsePayload(payload, v.live.key, func(e entry) bool {
				switch e.form {
				case formSamples:
					decodeSamples(e.data, k.first, func(s sample) bool { return took(s.t+offset, one(s)) })
				case formBuckets:
					decodeBuckets(e.data, k.first, func(b bucket) bool { return took(b.t+offset, b) })
				}
				return going
			})
		})
	}
	// Then the values that no block has yet.
	switch finest {
	case hours:
		v.eachLive(v.live.hours, &going, yield)
		v.eachLive(v.live.minutes, &going, yield)
	case minutes:
		v.eachLive(v.live.minutes, &going, yield)
	case raw:
		for _, s := range v.live.samples {
			if going = going && yield(s.t+v.current.wall, one(s)); !going {
				return
			}
		}
	}
}

func (v *view) eachLive(all []bucket, going *bool, yield func(wall int64, b bucket) bool) {
	for _, b := range all {
		if *going = *going && yield(b.t+v.current.wall, b); !*going {
			return
		}
	}
}

func one(s sample) bucket {
	b := bucket{t: s.t}
	b.add(s)
	return b
}

// start returns the sequence after which the tier has blocks.
func (v tierView) start() uint64 {
	for _, s := range v.segments {
		if len(s.refs) > 0 {
			return s.refs[0].from
		}
	}
	if len(v.unwritten) > 0 {
		return v.unwritten[0].from
	}
	return math.MaxUint64
}

// Changes calls yield for the changes of a state or an output, or for the events, in a range of
// wall time. It goes on in recorded order until yield returns false.
func (h *History) Changes(address string, from, to time.Time, yield func(device.Change) bool) {
	v := h.view(address)
	first, end := clampTime(from), clampTime(to)
	going := true
	took := func(c change, offset int64) bool {
		if wall := c.t + offset; going && !c.held && wall >= first && wall < end {
			going = yield(c.at(offset))
		}
		return going
	}
	v.tiers[minutes].each(v.disk, func(k head) bool { return going && v.touches(k, first, end) }, func(k head, payload []byte) {
		v.changes(k, payload, took)
	})
	for _, c := range v.live.changes {
		if c.t += v.current.base; !took(c, v.current.offset()) {
			return
		}
	}
}

func (v *view) changes(k head, payload []byte, yield func(c change, offset int64) bool) {
	parsePayload(payload, v.live.key, func(e entry) bool {
		if e.form == formChanges {
			decodeChanges(e.data, k.first, func(c change) bool { return yield(c, v.offset(k.epoch)) })
		}
		return true
	})
}

// ValueAt returns the value that a state or an output had at a time, and since when. It
// reports false where that is not known, as while the site was off.
func (h *History) ValueAt(address string, at time.Time) (device.Change, bool) {
	v := h.view(address)
	t := clampTime(at)
	found, ok := device.Change{}, false
	took := func(c change, offset int64) bool {
		if c.t+offset <= t {
			found, ok = c.at(offset), true
		}
		return true
	}
	if v.live.held != nil && t-v.current.wall >= v.liveStart() {
		if c := v.live.carried; c != nil {
			took(v.absolute(*c), v.current.offset())
		}
		for _, c := range v.live.changes {
			took(v.absolute(c), v.current.offset())
		}
		return found, ok
	}
	// The newest block that begins before that time, unless its epoch had ended by then.
	var k head
	seen := false
	end := make(map[uint32]int64)
	v.tiers[minutes].each(v.disk, func(c head) bool {
		end[c.epoch] = c.last
		if c.first+v.offset(c.epoch) <= t {
			k, seen = c, true
		}
		return false
	}, nil)
	if !seen || k.epoch != v.current.epoch && t > end[k.epoch]+v.offset(k.epoch) {
		return found, false
	}
	v.tiers[minutes].each(v.disk, func(c head) bool { return c.seq == k.seq }, func(k head, payload []byte) {
		v.changes(k, payload, took)
	})
	return found, ok
}

// absolute returns a change of the collector in recorded time.
func (v *view) absolute(c change) change {
	c.t += v.current.base
	return c
}

// liveStart returns the collector's time at which it begins to know the point's changes.
func (v *view) liveStart() int64 {
	if n := v.tiers[minutes].last(); n.epoch == v.current.epoch && n.seq > 0 {
		return n.last - v.current.base
	}
	return 0
}

func (v tierView) last() (h head) {
	for _, s := range v.segments {
		if n := len(s.refs); n > 0 {
			h = s.refs[n-1].head
		}
	}
	if n := len(v.unwritten); n > 0 {
		h = v.unwritten[n-1].head
	}
	return h
}

// Summaries divides a range of wall time into about the given number of steps, of a round length,
// in local time. It returns the steps that have readings.
func (h *History) Summaries(address string, from, to time.Time, steps int) (all []device.Summary, step time.Duration, err error) {
	q := Query{Address: address, From: from, To: to, Steps: steps, Location: time.Local}
	q.Step = q.length()
	all, err = h.Query(q)
	return all, q.Step, err
}
