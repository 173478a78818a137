package history

import (
	"slices"

	"agentsite/device"
)

// series holds the collected values of one point. Times are those of its collector.
type series struct {
	key     string
	kind    device.Kind
	within  device.Range // of a measurement; the zero Range for any number
	listed  bool         // false for a point that is gone; its series goes when it is written
	samples []sample     // since the last raw block
	minutes []bucket     // since the last block of minutes
	hours   []bucket     // since the last block of hours
	changes []change     // since the last block of minutes
	inRaw   int          // of changes
	held    *change      // the newest value of a state or an output
	carried *change      // held at the last block of minutes
	last    int64
	atLast  uint16 // records at last
	recent  int    // changes of late, less one for each second
	counted int64  // when recent was brought up to date

	dropped   bool  // records of this run were left out
	droppedAt int64 // the newest of them
}

// drop notes that a record was left out.
func (s *series) drop(t int64) {
	if !s.dropped || t > s.droppedAt {
		s.dropped, s.droppedAt = true, t
	}
}

// collector collects the readings of one epoch.
type collector struct {
	series map[string]*series // by key
	epoch  uint32
	base   int64 // recorded time at time 0
	wall   int64 // Unix ms at time 0
	unsure bool  // wall is a guess
	now    int64 // of the newest entry or block
}

const (
	msMinute = 60_000
	msHour   = 60 * msMinute
)

func (c *collector) offset() int64 { return c.wall - c.base }

// addTo merges a later bucket into the last one of all, or appends it if it is of another period of
// the wall clock.
func (c *collector) addTo(all []bucket, b bucket, length int64) []bucket {
	if n := len(all); n > 0 && floor(all[n-1].t+c.wall, length) == floor(b.t+c.wall, length) {
		all[n-1].merge(b)
		return all
	}
	return append(all, b)
}

// floor returns the largest multiple of length that is not after t.
func floor(t, length int64) int64 {
	if r := t % length; r < 0 {
		return t - r - length
	} else {
		return t - r
	}
}

func (c *collector) sample(s *series, x sample) {
	s.samples = append(s.samples, x)
	c.addSample(s, x)
}

func (c *collector) addSample(s *series, x sample) {
	b := bucket{t: x.t}
	b.add(x)
	s.minutes = c.addTo(s.minutes, b, msMinute)
}

func (c *collector) change(s *series, x change) {
	s.changes = append(s.changes, x)
	if s.kind != device.KindEvent {
		s.held = &x
	}
}

// A series may have a burst of changes, and then one a second. A ramp has fifty a second, and would
// evict the changes of other points.
const (
	maxBurst    = 60
	changeEvery = 1000 // ms
)

// limited is change for a reading. Where there are too many, the newest stands for the last ones.
func (c *collector) limited(s *series, x change) {
	passed := (x.t - s.counted) / changeEvery
	s.recent = int(max(0, int64(s.recent)-passed))
	s.counted += passed * changeEvery
	if s.recent < maxBurst {
		s.recent++
	} else if n := len(s.changes); n > s.inRaw {
		s.drop(s.changes[n-1].t)
		s.changes = s.changes[:n-1]
	}
	c.change(s, x)
}

// same reports whether x brings nothing new.
func (s *series) same(x change) bool {
	h := s.held
	return h != nil && h.Value == x.Value && h.Bad == x.Bad && h.Holder == x.Holder && h.Cause == x.Cause
}

// span is the time of the entries of a block, in the collector's time.
type span struct {
	first, last int64
	any         bool
}

func (p *span) add(first, last int64) {
	if !p.any {
		p.first, p.last, p.any = first, last, true
	}
	p.first, p.last = min(p.first, first), max(p.last, last)
}

// head returns a block's with entries of a time; the sequence is the caller's.
func (c *collector) head(p span) head {
	p.add(c.now, c.now)
	return head{epoch: c.epoch, first: p.first + c.base, last: p.last + c.base, offset: c.offset(), unsure: c.unsure}
}

// takeRaw encodes the entries collected since the last raw block.
func (c *collector) takeRaw() (head, []entry) {
	var p span
	for _, s := range c.series {
		if n := len(s.samples); n > 0 {
			p.add(s.samples[0].t, s.samples[n-1].t)
		}
		if n := len(s.changes); n > s.inRaw {
			p.add(s.changes[s.inRaw].t, s.changes[n-1].t)
		}
	}
	h := c.head(p)
	var all []entry
	for key, s := range c.series {
		if len(s.samples) > 0 {
			all = append(all, entry{key, formSamples, appendSamples(nil, h.first-c.base, s.samples)})
		}
		if len(s.changes) > s.inRaw {
			all = append(all, entry{key, formChanges, appendChanges(nil, h.first-c.base, s.changes[s.inRaw:])})
		}
		s.samples, s.inRaw = s.samples[:0], len(s.changes)
	}
	return h, all
}

// takeMinutes encodes the minutes collected since their last block, with the values that states and
// outputs had then, and adds them to the hours.
func (c *collector) takeMinutes() (head, []entry) {
	var p span
	for _, s := range c.series {
		if n := len(s.minutes); n > 0 {
			p.add(s.minutes[0].t, s.minutes[n-1].t)
		}
		if n := len(s.changes); n > 0 {
			p.add(s.changes[0].t, s.changes[n-1].t)
		}
	}
	h := c.head(p)
	var all []entry
	for key, s := range c.series {
		if len(s.minutes) > 0 {
			all = append(all, entry{key, formBuckets, appendBuckets(nil, h.first-c.base, s.minutes)})
		}
		if s.carried != nil {
			held := *s.carried // a query may have it
			held.held = true
			s.changes = slices.Insert(s.changes, 0, held)
		}
		if len(s.changes) > 0 {
			all = append(all, entry{key, formChanges, appendChanges(nil, h.first-c.base, s.changes)})
		}
		for _, b := range s.minutes {
			s.hours = c.addTo(s.hours, b, msHour)
		}
		s.minutes, s.changes, s.inRaw, s.carried = s.minutes[:0], s.changes[:0], 0, nil
		if s.held != nil && s.listed {
			held := *s.held
			s.carried = &held
		}
	}
	return h, all
}

// takeHours encodes the hours collected since their last block, and forgets the points that are
// gone.
func (c *collector) takeHours() (head, []entry) {
	var p span
	for _, s := range c.series {
		if n := len(s.hours); n > 0 {
			p.add(s.hours[0].t, s.hours[n-1].t)
		}
	}
	h := c.head(p)
	var all []entry
	for key, s := range c.series {
		if len(s.hours) > 0 {
			all = append(all, entry{key, formBuckets, appendBuckets(nil, h.first-c.base, s.hours)})
		}
		s.hours = s.hours[:0]
		if !s.listed {
			delete(c.series, key)
		}
	}
	return h, all
}
