package main

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/ucum"
	"agentsite/node/config"
)

// recording has the readings of a CSV file for a configuration. It is a trial.Source: a value stands until
// the next row of its point, and is read as often as the device is.
type recording struct {
	from, to time.Time
	rows     int
	points   []*recordedPoint
}

// recordedPoint is a point of the configuration with its rows in the order of time.
type recordedPoint struct {
	agents.Point
	every time.Duration // of its device
	rows  []recordedValue
}

// recordedValue is a value from a time on. None stands for a point that cannot be read.
type recordedValue struct {
	at    time.Time
	value device.Value
}

// readRecording reads a file of the form that "history import" takes, with the values of any points of the
// configuration. zone is that of times without one.
func readRecording(file string, cfg *config.Site, zone *time.Location) (*recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer f.Close()
	r := newRecording(cfg)
	points := make(map[string]*recordedPoint)
	im := importer{
		file: filepath.Base(file), zone: zone, as: make(map[string]string), points: make(map[string]*importedPoint),
	}
	for _, p := range r.points {
		points[p.Point.Point], im.points[p.Point.Point] = p, new(importedPoint{Point: p.Point.Point})
	}
	err = im.eachRow(f, func(c cells) error {
		p := points[c.name()]
		if p == nil {
			names := slices.Sorted(maps.Keys(points))
			return usagef("%s:%d: the configuration has no point %.60q%s",
				im.file, im.line, c.name(), device.Suggest(c.name(), names, "point"))
		}
		at, err := im.parseTime(c.time())
		if err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		read := recordedValue{}
		of := im.points[p.Point.Point]
		if read.at, err = of.choose(c.time(), at); err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		if read.value, err = im.value(p.Point, c); err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		of.took(read.at)
		p.rows = append(p.rows, read)
		if r.rows++; r.rows == 1 || read.at.Before(r.from) {
			r.from = read.at
		}
		if read.at.After(r.to) {
			r.to = read.at
		}
		return nil
	})
	if err == nil && r.rows == 0 {
		err = usagef("%s has no reading", im.file)
	}
	return r, err
}

// newRecording returns the points of a configuration without rows.
func newRecording(cfg *config.Site) *recording {
	r := new(recording)
	every := make(map[string]time.Duration)
	for _, d := range cfg.Devices {
		every[d.Name] = d.Period()
	}
	all, _ := cfg.Described()
	for _, p := range all {
		name, _, _ := device.SplitAddress(p.Point)
		r.points = append(r.points, &recordedPoint{Point: p, every: every[name]})
	}
	return r
}

// value returns the value of a row: the last one of a summary, and none where the cell is empty.
func (im *importer) value(p agents.Point, c cells) (v device.Value, err error) {
	text := c.of("last")
	if text == "" {
		text = c.of("value")
	}
	switch {
	case text == "" || text == "unknown":
		return v, nil
	case p.Kind == device.KindMeasurement || p.Kind == device.KindLevel:
		n, err := im.number(text)
		if errors.Is(err, errNoNumber) || math.IsInf(n, 0) || math.IsNaN(n) {
			return v, usagef("%.60q is no number: write one in %s, or nothing where %s could not be read",
				text, ucum.Symbol(p.Unit), p.Point)
		}
		if err == nil && p.Min != nil && p.Max != nil && (n < *p.Min || n > *p.Max) {
			err = usagef("%v is outside %v..%v %s of %s, and would be a fault: write nothing for one",
				n, *p.Min, *p.Max, ucum.Symbol(p.Unit), p.Point)
		}
		return device.Number(n), err
	case len(p.Values) > 0:
		if !slices.Contains(p.Values, text) {
			err = usagef("%s is one of its words, and not %.60q%s", p.Point, text, device.Suggest(text, p.Values, ""))
		}
		return device.Text(text), err
	case text == "on" || text == "true":
		return device.Bool(true), nil
	case text == "off" || text == "false":
		return device.Bool(false), nil
	case p.Kind == device.KindEvent:
		return device.Text(text), nil
	}
	return v, usagef("%s is on or off, and not %.60q", p.Point, text)
}

// goodFor returns the time for which a reading of a point is good.
func (r *recording) goodFor(address string) time.Duration {
	for _, p := range r.points {
		if p.Point.Point == address && (p.Kind == device.KindMeasurement || p.Kind == device.KindState) {
			return device.GoodFor(p.every)
		}
	}
	return 0
}

// Readings is a trial.Source.
func (r *recording) Readings(
	names []string, from, to time.Time, yield func(int, time.Time, device.Value, time.Duration) bool,
) {
	reads := make([]*replay, len(names))
	for i, name := range names {
		k := slices.IndexFunc(r.points, func(p *recordedPoint) bool { return p.Point.Point == name })
		if k < 0 {
			continue
		}
		reads[i] = newReplay(r.points[k], from)
	}
	for {
		first := -1
		for i, p := range reads {
			if p != nil && p.ok && (first < 0 || p.next.at.Before(reads[first].next.at)) {
				first = i
			}
		}
		if first < 0 || !reads[first].next.at.Before(to) || !yield(first, reads[first].next.at, reads[first].next.value, 0) {
			return
		}
		reads[first].advance()
	}
}

// replay has the readings of a point, one after the other.
type replay struct {
	*recordedPoint
	rest []recordedValue // rows after next
	next recordedValue
	ok   bool // there is a next one
}

// newReplay begins at from, with what the point was then.
func newReplay(p *recordedPoint, from time.Time) *replay {
	i, _ := slices.BinarySearchFunc(p.rows, from, func(row recordedValue, at time.Time) int { return row.at.Compare(at) })
	a := &replay{recordedPoint: p, rest: p.rows[i:]}
	if i > 0 && p.Kind != device.KindEvent && (len(a.rest) == 0 || a.rest[0].at.After(from)) {
		a.next, a.ok = recordedValue{from, p.rows[i-1].value}, true
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
	again := a.next.at.Add(a.every)
	repeats := (a.Kind == device.KindMeasurement || a.Kind == device.KindState) && !a.next.value.IsZero()
	if repeats && (len(a.rest) == 0 || again.Before(a.rest[0].at)) {
		a.next.at = again
		return
	}
	a.row()
}
