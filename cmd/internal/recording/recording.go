// Package recording holds past readings of a configuration's points, for rules that are tried and simulations that
// replay them.
package recording

import (
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/config"
)

// Recording has the readings of a configuration's points. It is a trial.Source: a value stands until the next row of
// its point, and is read as often as the device is.
type Recording struct {
	From, To time.Time // of its rows
	Rows     int
	Points   []*Point
}

// Point is a point of the configuration with its rows in the order of time.
type Point struct {
	agents.Point
	every time.Duration // of its device
	rows  []Row
}

// Row is a value from a time on. None stands for a point that cannot be read.
type Row struct {
	At    time.Time
	Value device.Value
}

// New returns the points of a configuration without rows.
func New(cfg *config.Site) *Recording {
	r := new(Recording)
	every := make(map[string]time.Duration)
	for _, d := range cfg.Devices {
		every[d.Name] = d.Period()
	}
	all, _ := cfg.Described()
	for _, p := range all {
		name, _, _ := device.SplitAddress(p.Point)
		r.Points = append(r.Points, &Point{Point: p, every: every[name]})
	}
	return r
}

// Add adds a row to a point of the recording, which is later than its others.
func (r *Recording) Add(p *Point, row Row) {
	p.rows = append(p.rows, row)
	if r.Rows++; r.Rows == 1 || row.At.Before(r.From) {
		r.From = row.At
	}
	if row.At.After(r.To) {
		r.To = row.At
	}
}

// GoodFor returns the time for which a reading of a point is good.
func (r *Recording) GoodFor(address string) time.Duration {
	for _, p := range r.Points {
		if p.Point.Point == address && (p.Kind == device.KindMeasurement || p.Kind == device.KindState) {
			return device.GoodFor(p.every)
		}
	}
	return 0
}

// Readings is a trial.Source.
func (r *Recording) Readings(
	names []string, from, to time.Time, yield func(int, time.Time, device.Value, time.Duration) bool,
) {
	reads := make([]*replay, len(names))
	for i, name := range names {
		k := slices.IndexFunc(r.Points, func(p *Point) bool { return p.Point.Point == name })
		if k < 0 {
			continue
		}
		reads[i] = newReplay(r.Points[k], from)
	}
	for {
		first := -1
		for i, p := range reads {
			if p != nil && p.ok && (first < 0 || p.next.At.Before(reads[first].next.At)) {
				first = i
			}
		}
		if first < 0 || !reads[first].next.At.Before(to) || !yield(first, reads[first].next.At, reads[first].next.Value, 0) {
			return
		}
		reads[first].advance()
	}
}

// replay has the readings of a point, one after the other.
type replay struct {
	*Point
	rest []Row // rows after next
	next Row
	ok   bool // there is a next one
}

// newReplay begins at from, with what the point was then.
func newReplay(p *Point, from time.Time) *replay {
	i, _ := slices.BinarySearchFunc(p.rows, from, func(row Row, at time.Time) int { return row.At.Compare(at) })
	a := &replay{Point: p, rest: p.rows[i:]}
	if i > 0 && p.Kind != device.KindEvent && (len(a.rest) == 0 || a.rest[0].At.After(from)) {
		a.next, a.ok = Row{from, p.rows[i-1].Value}, true
	} else {
		a.row()
	}
	return a
}

// row makes the next row the next reading.
func (a *replay) row() {
	if a.ok = len(a.rest) > 0; a.ok {
		a.next, a.rest = a.rest[0], a.rest[1:]
	}
}

// advance goes on to the next reading: the value is read again, or the next row begins.
func (a *replay) advance() {
	again := a.next.At.Add(a.every)
	repeats := (a.Kind == device.KindMeasurement || a.Kind == device.KindState) && !a.next.Value.IsZero()
	if repeats && (len(a.rest) == 0 || again.Before(a.rest[0].At)) {
		a.next.At = again
		return
	}
	a.row()
}
