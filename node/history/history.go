// Package history keeps the readings of every measurement of the last 24 hours in memory,
// aggregated per minute.
package history

import (
	"math"
	"sync"
	"time"

	"agentsite/device"
)

const (
	resolution = time.Minute
	length     = 24 * time.Hour
	buckets    = int(length / resolution)
)

// History has the series of measurements. It is safe for concurrent use. A full series takes
// 34 kB.
type History struct {
	start time.Time

	mu     sync.Mutex
	series map[string]*series
}

// series has one bucket per minute, oldest first. It grows to its full size over a day.
type series struct {
	ring []bucket
	last int // minute of the newest bucket, since the start
	any  bool
}

// bucket aggregates the readings of one minute.
type bucket struct {
	min, max float32
	sum      float64
	count    uint32
}

// New returns a history of the points with these addresses.
func New(addresses []string) *History {
	h := &History{start: time.Now()}
	h.Keep(addresses)
	return h
}

// Keep replaces the list of points. The series of points in the new list are kept, the
// others are dropped.
func (h *History) Keep(addresses []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.series
	h.series = make(map[string]*series, len(addresses))
	for _, a := range addresses {
		if h.series[a] = old[a]; h.series[a] == nil {
			h.series[a] = &series{}
		}
	}
}

// Record adds a good numeric reading of a listed point, and ignores every other reading.
func (h *History) Record(r device.Reading) {
	if r.Quality != device.Good || r.Value.Type() != device.TypeNumber {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.series[r.Point]; s != nil {
		s.add(h.minute(r.At), r.Value.Number())
	}
}

// minute returns the minutes since the start by the monotonic clock, so that setting the
// wall clock has no effect.
func (h *History) minute(t time.Time) int { return int(t.Sub(h.start) / resolution) }

func (s *series) add(minute int, v float64) {
	v = max(-math.MaxFloat32, min(v, math.MaxFloat32)) // float32 would overflow to Inf
	switch {
	case minute < 0 || (s.any && minute < s.last):
		return // older than the newest bucket
	case !s.any || minute-s.last >= buckets:
		s.ring, s.last, s.any = append(s.ring[:0], bucket{}), minute, true
	}
	for s.last < minute {
		s.last++
		if len(s.ring) < buckets {
			if len(s.ring) == cap(s.ring) { // append alone would grow the ring to 48 kB
				s.ring = append(make([]bucket, 0, min(buckets, 2*len(s.ring)+16)), s.ring...)
			}
			s.ring = append(s.ring, bucket{})
		} else {
			copy(s.ring, s.ring[1:])
			s.ring[buckets-1] = bucket{}
		}
	}
	b := &s.ring[len(s.ring)-1]
	if f := float32(v); b.count == 0 {
		b.min, b.max = f, f
	} else {
		b.min, b.max = min(b.min, f), max(b.max, f)
	}
	b.sum += v
	b.count++
}

// Summaries returns the steps since from that have readings, oldest first. A step is at least
// a minute. A point that is not listed has none.
func (h *History) Summaries(address string, from time.Time, step time.Duration) []device.Summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.series[address]
	if s == nil || !s.any {
		return nil
	}
	step = max(step, resolution)
	var all []device.Summary
	current, count := -1, uint32(0)
	for i, b := range s.ring {
		at := h.start.Add(time.Duration(s.last-len(s.ring)+1+i) * resolution)
		since := at.Sub(from)
		if b.count == 0 || since <= -resolution {
			continue
		}
		if k := int(math.Floor(float64(max(0, since)) / float64(step))); k != current {
			current, count = k, 0
			all = append(all, device.Summary{At: from.Add(time.Duration(k) * step), Min: float64(b.min), Max: float64(b.max)})
		}
		sum := &all[len(all)-1]
		sum.Min, sum.Max = min(sum.Min, float64(b.min)), max(sum.Max, float64(b.max))
		sum.Mean = (sum.Mean*float64(count) + b.sum) / float64(count+b.count)
		count += b.count
		sum.Count = int(count)
	}
	for i := range all {
		all[i].Min, all[i].Max, all[i].Mean = round(all[i].Min), round(all[i].Max), round(all[i].Mean)
	}
	return all
}

// round rounds to seven digits. That removes the error of float32, and is more precise than
// any sensor.
func round(v float64) float64 {
	if math.Abs(v) < math.SmallestNonzeroFloat32 {
		return 0
	}
	scale := math.Pow(10, 6-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
