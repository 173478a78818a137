package main

import (
	"context"
	"errors"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// watch prints the readings of points, all of them for none, and then each that
// has changed, until ctx ends.
func (s *session) watch(ctx context.Context, points []string) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(patience, cancel)
	defer late.Stop()
	p := watchPrinter{app: s.app, last: make(map[string]agents.Reading)}
	err := s.Watch(watching, agents.Principal{}, agents.WatchRequest{Points: points}, func(u agents.Update) error {
		late.Stop()
		return p.print(u)
	})
	switch {
	case ctx.Err() != nil:
		return nil // Ctrl-C
	case watching.Err() != nil:
		return s.app.unreached(context.DeadlineExceeded)
	}
	if err = s.app.unreached(err); exitCode(err) == exitUnknown {
		return coded{exitAway, errors.New("the site has ended")}
	}
	return err
}

// watchPrinter prints updates, a line for each reading.
type watchPrinter struct {
	app   *app
	last  map[string]agents.Reading // as printed
	width int                       // of the longest point
}

func (w *watchPrinter) print(u agents.Update) error {
	var now agents.Readings
	before := w.last
	if u.Offer { // it has all points: those that are gone are forgotten
		w.last = make(map[string]agents.Reading, len(u.Readings))
	}
	for _, r := range u.Readings {
		w.width = max(w.width, textWidth(clean(r.Point)))
		last, printed := before[r.Point]
		same := r.Value == last.Value && r.Quality == last.Quality && r.Why == last.Why
		// An event is printed each time. Of an output more changes than its value.
		if w.last[r.Point] = r; printed && same && (u.Offer || r.Detail != nil) {
			continue
		}
		now.Readings = append(now.Readings, dated(r))
	}
	if len(now.Readings) == 0 {
		return nil
	}
	if w.app.json {
		return w.app.printJSON(now)
	}
	for _, r := range now.Readings {
		at := time.Now()
		if t, err := time.Parse(time.RFC3339, r.Time); err == nil {
			at = t
		}
		note := reading(r).note(0)
		if note != "" {
			note = "(" + note + ")"
		}
		if err := tableRow(w.app.out, []string{"TIME", "POINT", "VALUE", "NOTE"},
			at.In(time.Local).Format(time.TimeOnly), pad(clean(r.Point), w.width), show(r.Value, r.Unit), note); err != nil {
			return err
		}
	}
	return nil
}

// dated returns a reading of an update with its time, which its age tells. There is none
// where nothing was read yet.
func dated(r agents.Reading) agents.Reading {
	if !r.Value.IsZero() || r.Quality == device.Bad {
		r.Time = time.Now().Add(-time.Duration(r.Age * float64(time.Second))).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return r
}
