package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
)

// watch prints the readings of points, all of them for none, and then each that
// has changed, until ctx ends.
func (s *session) watch(ctx context.Context, points []string) error {
	first, err := s.readings(ctx, points)
	if err != nil {
		return err
	}
	w := &watching{some: make(chan struct{}, 1)}
	var uris []string
	for _, r := range first.Readings {
		w.all = append(w.all, r.Point)
		w.width = max(w.width, utf8.RuneCountInString(clean(r.Point)))
		uris = append(uris, agents.PointURI(r.Point))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, uris, w.changed) }()
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return nil // Ctrl-C
			}
			if err = s.app.unreached(err); err == nil || exitCode(err) == exitUnknown {
				return coded{exitAway, errors.New("the site has ended")}
			}
			return err
		case <-w.some:
		}
		now, err := s.readings(ctx, w.take())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.app.printChanges(now, w.width); err != nil {
			return err
		}
	}
}

// changes are readings, and the structured result that they came in.
type changes struct {
	readResult
	text []byte
}

func (s *session) readings(ctx context.Context, points []string) (changes, error) {
	res, err := s.call(ctx, "read_points", agents.ReadRequest{Points: points})
	if err != nil {
		return changes{}, err
	}
	out := changes{text: res.JSON}
	return out, json.Unmarshal(res.JSON, &out.readResult)
}

func (a *app) printChanges(c changes, width int) error {
	if a.json {
		return a.printLine(c.text)
	}
	for _, r := range c.Readings {
		at := time.Now()
		if t, err := time.Parse(time.RFC3339, r.Time); err == nil {
			at = t
		}
		point := clean(r.Point)
		line := at.In(time.Local).Format(time.TimeOnly) + "  " + pad(point, width) + "  " + clean(show(r.Value, r.Unit))
		if note := clean(r.note(0)); note != "" {
			line += "  (" + note + ")"
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}

// watching is what has changed and was not printed yet. It is bounded by what is
// watched.
type watching struct {
	all   []string
	width int // of the longest of them
	some  chan struct{}

	mu      sync.Mutex
	pending []string
}

// changed notes a change and returns at once. No URI stands for all of them.
func (w *watching) changed(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if uri == "" {
		w.pending = slices.Clone(w.all)
	} else if p := agents.PointOf(uri); slices.Contains(w.all, p) && !slices.Contains(w.pending, p) {
		w.pending = append(w.pending, p)
	}
	select {
	case w.some <- struct{}{}:
	default:
	}
}

func (w *watching) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.pending
	w.pending = nil
	return pending
}
