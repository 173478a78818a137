package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

const (
	// flushEvery is the time between writes: the most that a power cut loses.
	flushEvery = time.Minute
	// A block of minutes is written after so many raw ones, and one of hours after so many of
	// those.
	rawPerMinutes, minutesPerHours = 60, 24
	// maxCollected limits the samples and changes in memory. More are encoded early.
	maxCollected = 16 << 10
	// Before Open nothing is encoded, and each series keeps so many entries at most.
	maxMinutes, maxEntries = 24 * 60, 1024
	// clockStep is the largest difference of the wall clock from the assumed one that is no step.
	clockStep = time.Second
)

// Options say how much is kept, and where the time comes from. The zero value of each means
// its default.
type Options struct {
	Raw     time.Duration // how long readings are kept: 7 days; ages are recorded time
	Minutes time.Duration // how long minutes, and the changes of states and outputs: 90 days
	Hours   time.Duration // how long hours: 10 years
	Bytes   int64         // of all files: 64 MB
	// Now replaces History.Now; nil keeps that.
	Now func() (time.Time, bool)
	// Recorded is told the time of the newest stored record, before Now is asked; nil for nobody.
	Recorded func(time.Time)
}

func (o Options) withDefaults() Options {
	const day = 24 * time.Hour
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.Raw, 7*day)
	set(&o.Minutes, 90*day)
	set(&o.Hours, 10*365*day)
	if o.Bytes <= 0 {
		o.Bytes = 64 << 20
	}
	return o
}

// History collects readings and has the past ones. It is safe for concurrent use. Until Open it has
// the last day, in memory.
type History struct {
	start   time.Time // time 0 of the collector
	options Options
	wake    chan struct{}

	// Now returns the site's time, and whether it is known: the machine's, unless it is set before
	// the first use.
	Now func() (time.Time, bool)

	writing sync.Mutex // held for the disk, and before mu

	mu        sync.Mutex // never held for the disk
	collector collector
	points    map[string]*series // those that are listed, by address
	collected int                // since the last raw block
	opened    bool
	disk      disk
	tiers     [tiers]tier
	earlier   []*epoch         // the newest last; not changed after Open
	epochs    map[uint32]int64 // their offsets; replaced, and never changed
	end       int64            // the wall time of the newest record of them
	seq       uint64           // of the newest raw block
	blocks    [tiers]int       // since the last one of the next tier
	restate   bool             // the offset has changed
	failing   bool
}

// New returns a history of these points by their addresses, which begins in memory.
func New(points map[string]device.Point) *History {
	now := time.Now()
	h := &History{
		start: now, wake: make(chan struct{}, 1),
		collector: collector{series: make(map[string]*series), wall: now.UnixMilli(), unsure: true},
		Now:       func() (time.Time, bool) { return time.Now(), true },
	}
	h.Keep(points)
	return h
}

// Keep replaces the list of points. Readings of other points are ignored; their stored readings are
// found again when they are listed again. A point with another unit is another one.
func (h *History) Keep(points map[string]device.Point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.points
	h.points = make(map[string]*series, len(points))
	for address, p := range points {
		key := seriesKey(address, p.Unit)
		if len(key) > maxKey || p.Kind == device.KindImage {
			continue
		}
		s := h.collector.series[key]
		if s == nil {
			s = &series{}
			h.collector.series[key] = s
		}
		if s.kind != p.Kind && !h.opened {
			*s = series{}
		}
		if s.key, s.kind, s.within = key, p.Kind, p.Range; before[address] != s {
			s.held, s.carried = nil, nil // what was read of it before may not be so any more
		}
		s.listed, h.points[address] = true, s
	}
	for address, s := range before {
		if h.points[address] == s {
			continue
		}
		if s.listed = false; !h.opened {
			delete(h.collector.series, s.key)
		}
	}
}

// seriesKey returns the key of a series in the files. An address has no space.
func seriesKey(address, unit string) string {
	if unit == "" {
		return address
	}
	return address + " " + unit
}

// now returns the collector's time, which does not follow the wall clock.
func (h *History) now() int64 { return h.at(time.Now()) }

func (h *History) at(t time.Time) int64 { return t.Sub(h.start).Milliseconds() }

// Record adds a reading of a listed point: each of a measurement and an event, and those of
// other points that change something. One that is older than the newest of its point is
// ignored. Of more than a burst of 60 changes and then one a second, some are left out; the newest
// stays. Record does not wait for the disk.
func (h *History) Record(r device.Reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.points[r.Point]
	if s == nil {
		return
	}
	t := h.at(r.At)
	if t < s.last || r.At.Before(h.start) {
		return
	}
	good := r.Quality == device.Good
	switch s.kind {
	case device.KindMeasurement:
		switch {
		case !good:
			h.collector.sample(s, sample{t, math.NaN()})
		case r.Value.Type() == device.TypeNumber && r.Value.Finite():
			h.collector.sample(s, sample{t, r.Value.Number()})
		default:
			return
		}
	case device.KindEvent:
		if !good || r.Value.IsZero() {
			return
		}
		h.collector.limited(s, change{t: t, Value: r.Value})
	default:
		c := change{t: t, Value: r.Value, Bad: !good, Holder: clip(r.Holder), Cause: clip(r.Cause)}
		if c.Bad {
			c.Value = device.Value{}
		}
		if s.same(c) {
			return
		}
		h.collector.limited(s, c)
	}
	h.took(s, t)
}

// took keeps the memory within its bounds, and wakes Run.
func (h *History) took(s *series, t int64) {
	if t != s.last {
		s.last, s.atLast = t, 0
	}
	s.atLast++
	h.collector.now = max(h.collector.now, t)
	h.collected++
	switch {
	case !h.opened:
		if len(s.samples) >= 2*maxEntries {
			s.drop(s.samples[maxEntries-1].t)
		}
		if len(s.changes) >= 2*maxEntries {
			s.drop(s.changes[maxEntries-1].t)
		}
		s.samples, s.minutes = newest(s.samples, maxEntries), newest(s.minutes, maxMinutes)
		s.changes = newest(s.changes, maxEntries)
	case h.collected >= maxCollected:
		h.seal(false)
	}
	wake(h.wake)
}

// newest drops the oldest half where there are twice as many entries as limit.
func newest[T any](all []T, limit int) []T {
	if len(all) < 2*limit {
		return all
	}
	return append(all[:0], all[limit:]...)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Open begins to store the history in a folder, with the records collected already. A full or a
// read-only disk is no error; History then goes on in memory, says so once, and writes when it can.
// Open may take a second for a long history.
func (h *History) Open(path string, o Options) error { return h.open(folder(path), o) }

func (h *History) open(d disk, o Options) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.opened {
		return errors.New("the history is open already")
	}
	o = o.withDefaults()
	names, err := d.List()
	if err != nil {
		return fmt.Errorf("the history's folder cannot be read: %w", err)
	}
	l := loaded{disk: d, epochs: make(map[uint32]*epoch)}
	for i, keep := range [tiers]time.Duration{o.Raw, o.Minutes, o.Hours, o.Hours} {
		l.tiers[i] = tier{id: i, keep: keep.Milliseconds(), room: math.MaxInt}
	}
	l.load(names)
	run := reserve(d, names, l.end.epoch)

	h.mu.Lock()
	defer h.mu.Unlock()
	h.options, h.disk, h.tiers, h.seq = o, d, l.tiers, l.end.seq
	c := &h.collector
	c.epoch, c.base, c.unsure = run, l.end.last+1, true
	h.setEarlier(l.epochs)
	if o.Now != nil {
		h.Now = o.Now
	}
	if o.Recorded != nil && h.earlier != nil {
		o.Recorded(time.UnixMilli(h.end))
	}
	h.followClock()
	h.opened, h.restate = true, false // nothing of this epoch is stored yet
	wake(h.wake)
	return nil
}

// seal encodes the collected records for the disk, with the coarser tiers when they are due, or
// with all.
func (h *History) seal(all bool) {
	if h.collected > 0 || h.restate {
		h.seq++
		h.add(raw, h.collector.takeRaw)
		h.collected = 0
	}
	changes := 0
	for _, s := range h.collector.series {
		changes += len(s.changes)
	}
	all = all || h.restate
	if h.blocks[raw] > 0 && (all || h.blocks[raw] >= rawPerMinutes || changes > maxCollected/4) {
		h.add(minutes, h.collector.takeMinutes)
		h.blocks[raw] = 0
	}
	if h.blocks[minutes] > 0 && (all || h.blocks[minutes] >= minutesPerHours) {
		h.add(hours, h.collector.takeHours)
		h.blocks[minutes] = 0
	}
	h.restate = false
}

func (h *History) add(tier int, take func() (head, []entry)) {
	h.collector.now = max(h.collector.now, h.now())
	of, all := take()
	t := &h.tiers[tier]
	end, ok := t.end()
	if of.seq, of.from = h.seq, end.seq; !ok && tier == raw { // raw blocks may be lost of which others know
		of.from = h.seq - 1
	}
	t.add(of, all)
	h.blocks[tier]++
}

// Run writes the history once a minute while there is something to write, until ctx ends, and
// then the rest.
func (h *History) Run(ctx context.Context) error {
	var minute <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return h.flush(true)
		case <-h.wake:
			if minute == nil {
				minute = time.After(flushEvery)
			}
		case <-minute:
			if minute = nil; h.flush(false) != nil {
				wake(h.wake)
			}
		}
	}
}

// flush writes all that was collected; at the end of the epoch the coarser tiers, too.
func (h *History) flush(end bool) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	if !h.opened {
		h.mu.Unlock()
		return nil
	}
	now, known := h.followClock()
	h.seal(end)
	h.mu.Unlock()
	var errs error
	wrote := false
	for i := range h.tiers {
		for more := true; more; {
			n, err := h.writeTier(&h.tiers[i])
			errs, wrote, more = errors.Join(errs, err), wrote || n > 0, n > 0
		}
	}
	if wrote {
		h.expire(now, known)
	}
	if failing := errs != nil; failing != h.failing {
		if h.failing = failing; failing {
			slog.Error("history cannot be written; the newest part stays in memory", "err", errs)
		} else {
			slog.Warn("history is written again")
		}
	}
	return errs
}

// writeTier writes all waiting blocks of the raw tier, or one of another tier, and returns how
// many. If power fails during a write of two, the second can be there without the first, although
// its sequence says that the tier has both.
func (h *History) writeTier(t *tier) (n int, err error) {
	h.mu.Lock()
	all := t.unwritten
	if t.id != raw {
		all = all[:min(len(all), 1)]
	}
	h.mu.Unlock()
	if len(all) == 0 {
		return 0, nil
	}
	s, refs, err := t.write(h.disk, all)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(t.segments) == 0 || t.segments[len(t.segments)-1] != s {
		t.segments = append(slices.Clone(t.segments), s)
	}
	s.refs = append(s.refs, refs...)
	end := refs[len(refs)-1]
	s.size = end.at + headSize + int64(end.length)
	for len(t.unwritten) > 0 && t.unwritten[0].seq <= end.seq {
		t.waiting -= len(t.unwritten[0].b)
		t.unwritten = t.unwritten[1:]
	}
	if t.lost > 0 {
		slog.Warn("part of the history could not be kept in memory while the disk failed", "tier", tierNames[t.id], "blocks", t.lost)
		t.lost = 0
	}
	return len(refs), nil
}

// Bytes returns how many bytes of the stored history count against Options.Bytes; 0 while it is only in memory.
func (h *History) Bytes() (total int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.tiers {
		total += h.tiers[i].size()
	}
	return total
}

// expire removes records that are too old, and the oldest of the largest tier while there are too
// many. Imported values have no recorded time of their own: while the clock is not set, they stay.
func (h *History) expire(now time.Time, known bool) {
	h.mu.Lock()
	var old []*segment
	if known {
		old = h.tiers[imported].expired(now.UnixMilli())
	}
	for i := range imported {
		t := &h.tiers[i]
		if end, ok := t.end(); ok {
			old = append(old, t.expired(end.last)...)
		}
	}
	for {
		total, largest := int64(0), (*tier)(nil)
		for i := range h.tiers {
			t := &h.tiers[i]
			total += t.size()
			if len(t.segments) > 1 && (largest == nil || t.size() > largest.size()) {
				largest = t
			}
		}
		if total <= h.options.Bytes || largest == nil {
			break
		}
		old = append(old, largest.dropOldest())
	}
	h.mu.Unlock()
	for _, s := range old {
		if err := h.disk.Remove(s.name); err != nil {
			slog.Warn("old history cannot be removed", "file", s.name, "err", err)
		}
	}
	if old != nil {
		h.disk.Sync()
	}
}
