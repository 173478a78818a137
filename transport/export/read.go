package export

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// exported reports whether a point is sent: numbers, bools, and texts of which it says what they can be. Others would
// make a series of each text. Another site, which names its points as it likes, has an export of its own.
func exported(p agents.Point) bool {
	return p.Kind != device.KindImage && p.Kind != device.KindText && strings.Count(p.Point, "/") == 1
}

// labels returns the labels of a series of a point.
func (s *sender) labels(p agents.Point, value string) string {
	all := map[string]string{
		"__name__": metric, labelSite: s.world.Site, labelPoint: p.Point, labelUnit: p.Unit, labelValue: value,
	}
	maps.Copy(all, s.RemoteWrite.Labels)
	return labelsOf(all)
}

// read returns the samples of a point after from, up to until: of a measurement the mean of each step, at its end.
func (s *sender) read(ctx context.Context, x *series, from, until time.Time, step time.Duration) ([]sample, error) {
	steps := float64((until.Sub(from) + step - 1) / step)
	h, err := s.site.History(ctx, s.self, agents.HistoryRequest{
		Point: x.Point.Point, Steps: &steps,
		From: from.UTC().Format(time.RFC3339Nano), To: until.UTC().Format(time.RFC3339Nano),
	})
	switch {
	case err != nil:
		return nil, err
	case h.Cut && until.Sub(from) > time.Second: // more changes than an answer has
		half := from.Add(until.Sub(from) / 2).Truncate(time.Second)
		if !half.After(from) {
			half = from.Add(time.Second)
		}
		all, err := s.read(ctx, x, from, half, step)
		if err != nil {
			return nil, err
		}
		more, err := s.read(ctx, x, half, until, step)
		return append(all, more...), err
	case x.Kind == device.KindMeasurement:
		return s.steps(x.Point, h)
	}
	return s.changes(x.Point, h, from)
}

func (s *sender) steps(p agents.Point, h agents.History) (all []sample, err error) {
	labels := s.labels(p, "")
	length := int64(h.Length * 1000)
	for _, step := range h.Steps {
		at, err := time.Parse(time.RFC3339, step.Time)
		if err != nil {
			return nil, err
		}
		all = append(all, sample{labels, at.UnixMilli() + length, step.Mean})
	}
	return all, nil
}

// changes returns the samples of a point that is no measurement: 1 and 0 of a bool, and of a text 1 for the value that
// it has, and 0 for the one that it had. What it had before from is repeated there, but not an event.
func (s *sender) changes(p agents.Point, h agents.History, from time.Time) (all []sample, err error) {
	type change struct {
		at    int64
		value device.Value
	}
	var changes []change
	for _, c := range h.Changes {
		at, err := time.Parse(time.RFC3339, c.Time)
		if err != nil {
			return nil, fmt.Errorf("a change has no time: %w", err)
		}
		changes = append(changes, change{max(at.UnixMilli(), from.UnixMilli()), c.Value})
	}
	// In recorded order, which is not that of time where the clock was set back.
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	had := "" // the text
	for i, c := range changes {
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue // the later one of the same millisecond
		}
		switch c.value.Type() {
		case device.TypeNumber:
			all = append(all, sample{s.labels(p, ""), c.at, c.value.Number()})
		case device.TypeBool:
			n := 0.0
			if c.value.Bool() {
				n = 1
			}
			all = append(all, sample{s.labels(p, ""), c.at, n})
		case device.TypeText:
			text := c.value.Text()
			if !slices.Contains(p.Values, text) {
				continue
			}
			if had != "" && had != text {
				all = append(all, sample{s.labels(p, had), c.at, 0})
			}
			all = append(all, sample{s.labels(p, text), c.at, 1})
			had = text
		}
	}
	return all, nil
}
