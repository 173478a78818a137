package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/ucum"

	"github.com/spf13/cobra"
)

func (a *app) pointsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "points", GroupID: groupEveryday, Args: noArgs,
		Short: "List the sensors and outputs",
		RunE: a.onSite(func(ctx context.Context, s *session, _ []string) error {
			list, err := s.listPoints(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string][]point{"points": list})
			}
			return a.pointsTable(list)
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// described returns the name that the owner gave a point, and what it is.
func (p point) described() string {
	if p.Name == "" || p.Description == "" {
		return p.Name + p.Description
	}
	return p.Name + ": " + p.Description
}

func (a *app) pointsTable(points []point) error {
	if len(points) == 0 {
		return a.say("this site has no points: its configuration names no devices")
	}
	var rows [][]string
	for _, p := range points {
		row := []string{p.Point, string(p.Kind), p.values(), "", "", p.limits(), p.described()}
		if p.output() {
			row[3] = show(p.Safe, p.Unit)
			if row[4] = "no limit"; p.MaxSeconds > 0 {
				row[4] = span(p.MaxSeconds)
			}
		}
		rows = append(rows, row)
	}
	return table(a.out, []string{"POINT", "KIND", "VALUES", "SAFE", "AT MOST", "LIMITS", "DESCRIPTION"}, rows)
}

// values describes a point's values: its words, or its range and unit.
func (p point) values() string {
	switch {
	case p.Kind == "switch":
		return "on, off"
	case len(p.Values) > 0:
		return strings.Join(p.Values, ", ")
	case p.Kind == "level" && p.Min != nil && p.Max != nil:
		return strings.TrimSpace(fmt.Sprintf("%v..%v %s", *p.Min, *p.Max, ucum.Symbol(p.Unit)))
	}
	return ucum.Symbol(p.Unit)
}

func (a *app) readCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "read [DEVICE|DEVICE/POINT...]", GroupID: groupEveryday,
		Short: "Show the latest readings",
		Long: `Show the latest readings of points, of all points of a device, or of everything.
With --watch, also print every change until Ctrl-C.`,
		Example: "  agentsite read greenhouse/temperature --watch\n  agentsite read greenhouse",
		RunE: a.onSite(func(ctx context.Context, s *session, points []string) error {
			if len(points) > 0 {
				list, err := s.listPoints(ctx)
				if err == nil {
					points, err = pick(list, points, point.readable)
				}
				if err != nil {
					return err
				}
			}
			if follow {
				return s.watch(ctx, points)
			}
			now, err := s.latest(ctx, points)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(agents.Readings{Readings: now})
			}
			return a.readTable(now, s.askSecondsLeft(ctx))
		}),
		ValidArgsFunction: a.completePoints(-1, point.readable),
	}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "print every change until Ctrl-C")
	return cmd
}

// latest asks for the latest readings. A site with nothing to read has no tool for that.
func (s *session) latest(ctx context.Context, points []string) ([]agents.Reading, error) {
	now, err := askSite(ctx, s, agents.Site.Read, agents.ReadRequest{Points: points})
	if err == nil || len(points) > 0 {
		return now.Readings, err
	}
	if list, listed := s.listPoints(ctx); listed != nil || slices.ContainsFunc(list, point.readable) {
		return nil, err
	}
	return []agents.Reading{}, nil
}

// readable reports whether a point has readings.
func (p point) readable() bool { return p.Kind != "text" && p.Kind != "image" }

func (a *app) readTable(readings []agents.Reading, left map[string]float64) error {
	if len(readings) == 0 {
		return a.say("this site has no readings: its configuration has no sensors")
	}
	var rows [][]string
	for _, of := range readings {
		r := reading(of)
		rows = append(rows, []string{r.Point, show(r.Value, r.Unit), r.age(), r.note(left[r.Point])})
	}
	return painted(a.out, []string{"POINT", "VALUE", "AGE", "NOTE"}, rows, func(row, column int) style {
		switch r := readings[row]; {
		case column == 2:
			return styleDim
		case column == 0:
		case r.Quality == device.Bad:
			return styleWrong
		case r.Quality == device.Stale:
			return styleWarning
		case left[r.Point] > 0:
			return styleStrong
		}
		return ""
	})
}

func (r reading) age() string {
	if r.Time == "" {
		return ""
	}
	return ago(r.Age)
}

// note returns the quality, if it is not good, and the reason and time left.
func (r reading) note(left float64) string {
	var notes []string
	if r.Quality != device.Good {
		notes = append(notes, string(r.Quality))
	}
	if r.Why != "" {
		notes = append(notes, r.Why)
	}
	note := strings.Join(notes, ": ")
	if r.Effect != "" {
		note = strings.TrimPrefix(note+", effect "+r.Effect, ", ")
	}
	if left > 0 {
		return strings.TrimPrefix(note+", "+span(left)+" left", ", ")
	}
	return note
}

// askSecondsLeft asks how long each output will still be away from its safe value. The table
// can do without: after an error there are none.
func (s *session) askSecondsLeft(ctx context.Context) map[string]float64 {
	status, err := s.status(ctx)
	if err != nil {
		return nil
	}
	return secondsLeft(status)
}

func secondsLeft(status agents.Status) map[string]float64 {
	left := make(map[string]float64)
	for _, h := range status.Moved {
		left[h.Output] = h.Left
	}
	return left
}
