package main

import (
	"context"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/acts"
)

// change is a point's new value, or fault, at a time of the simulation.
type change struct {
	acts.Simulated
	at time.Time
}

// changes returns the changes of the measurements, states and events of a recording, in the order of time. A value
// stands until the next one, so that each row is there once. left counts the rows of other points, and those of
// events without a value.
func (r *recording) changes() (all []change, left int) {
	for _, p := range r.points {
		for _, row := range p.rows {
			to := acts.Simulated{Point: p.Point.Point, Value: row.value}
			switch {
			case p.Kind == device.KindEvent && !row.value.IsZero():
			case p.Kind != device.KindMeasurement && p.Kind != device.KindState:
				left++
				continue
			case row.value.IsZero():
				to.Fault = "the recording has no value here"
			}
			all = append(all, change{to, row.at})
		}
	}
	slices.SortStableFunc(all, func(x, y change) int { return x.at.Compare(y.at) })
	return all, left
}

// replay has a simulation read what was recorded, as long after each other as it was, until ctx ends.
func (s *session) replay(ctx context.Context, past *recording) error {
	all, left := past.changes()
	if left > 0 {
		s.app.note("%s left out: only measurements, states, and events that have a value are replayed", counted(left, "row"))
	}
	if len(all) == 0 {
		return usagef("the file has nothing to replay: write rows of measurements, states or events")
	}
	first, last := all[0].at, all[len(all)-1].at
	s.app.note("%s are replayed, for %s", counted(len(all), "reading"), span(last.Sub(first).Seconds()))
	begun := time.Now()
	for _, c := range all {
		if device.Sleep(ctx, time.Until(begun.Add(c.at.Sub(first)))) != nil {
			return nil // Ctrl-C
		}
		if err := s.simulate(ctx, c.Simulated); err != nil {
			return usagef("the reading of %s at %s: %w", c.Point, c.at.Format(time.RFC3339), err)
		}
	}
	s.app.note("all readings were replayed")
	return nil
}
