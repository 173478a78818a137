package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/acts"
)

// recorded is a row of a file of readings.
type recorded struct {
	acts.Simulated
	at time.Time
}

// replay has the measurements of a simulation read what a file has, as long after each other as there.
func (s *session) replay(ctx context.Context, file string) error {
	list, err := s.listPoints(ctx)
	if err != nil {
		return err
	}
	rows, err := s.app.readRecorded(file, list)
	if err != nil {
		return err
	}
	first, last := rows[0].at, rows[len(rows)-1].at
	s.app.note("%s of %s are replayed, for %s", counted(len(rows), "reading"), filepath.Base(file), span(last.Sub(first).Seconds()))
	begun := time.Now()
	for _, r := range rows {
		if device.Sleep(ctx, time.Until(begun.Add(r.at.Sub(first)))) != nil {
			return nil // Ctrl-C
		}
		if err := s.simulate(ctx, r.Simulated); err != nil {
			return usagef("%s: the reading of %s at %s: %w", filepath.Base(file), r.Point, r.at.Format(time.RFC3339), err)
		}
	}
	s.app.note("all readings of %s were replayed", filepath.Base(file))
	return nil
}

// readRecorded returns the readings of measurements in a file, in the order of time.
func (a *app) readRecorded(file string, list []point) ([]recorded, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%v", err)
	}
	defer f.Close()
	im := newImporter(file, list, time.Local)
	var rows []recorded
	im.each = func(p *importedPoint, x acts.PastReading) {
		rows = append(rows, recorded{acts.Simulated{Point: p.Point, Value: device.Number(x.Last)}, x.Time})
	}
	if err := im.read(f); err != nil {
		return nil, err
	}
	if rows == nil {
		return nil, usagef("%s has no reading of a measurement of this site%s", im.file, strings.TrimSuffix(": "+im.leftOut(), ": "))
	}
	if left := im.leftOut(); left != "" {
		a.note("%s", left)
	}
	slices.SortStableFunc(rows, func(x, y recorded) int { return x.at.Compare(y.at) })
	return rows, nil
}
