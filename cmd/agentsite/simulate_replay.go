package main

import (
	"context"
	"time"

	"agentsite/cmd/internal/recording"
	"agentsite/device"
)

// replay has a simulation read what was recorded, as long after each other as it was, until ctx ends.
func (s *session) replay(ctx context.Context, past *recording.Recording) error {
	all, left := past.Changes()
	if left > 0 {
		s.app.note("%s left out: only measurements, states, and events that have a value are replayed", counted(left, "row"))
	}
	if len(all) == 0 {
		return usagef("the file has nothing to replay: write rows of measurements, states or events")
	}
	first, last := all[0].At, all[len(all)-1].At
	s.app.note("%s are replayed, for %s", counted(len(all), "reading"), span(last.Sub(first).Seconds()))
	begun := time.Now()
	for _, c := range all {
		if device.Sleep(ctx, time.Until(begun.Add(c.At.Sub(first)))) != nil {
			return nil // Ctrl-C
		}
		if err := s.simulate(ctx, c.Simulated); err != nil {
			return usagef("the reading of %s at %s: %w", c.Point, c.At.Format(time.RFC3339), err)
		}
	}
	s.app.note("all readings were replayed")
	return nil
}
