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
	"agentsite/cmd/internal/recording"
	"agentsite/device"
	"agentsite/device/ucum"
	"agentsite/node/config"
)

// readRecording reads a file of the form that "history import" takes, with the values of any points of the
// configuration. zone is that of times without one.
func readRecording(file string, cfg *config.Site, zone *time.Location) (*recording.Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer f.Close()
	r := recording.New(cfg)
	points := make(map[string]*recording.Point)
	im := importer{
		file: filepath.Base(file), zone: zone, as: make(map[string]string), points: make(map[string]*importedPoint),
	}
	for _, p := range r.Points {
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
		read := recording.Row{}
		of := im.points[p.Point.Point]
		if read.At, err = of.choose(c.time(), at); err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		if read.Value, err = im.value(p.Point, c); err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		of.took(read.At)
		r.Add(p, read)
		return nil
	})
	if err == nil && r.Rows == 0 {
		err = usagef("%s has no reading", im.file)
	}
	return r, err
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
