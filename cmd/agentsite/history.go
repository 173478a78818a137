package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/spf13/cobra"
)

func (a *app) historyCommand() *cobra.Command {
	h := history{app: a, hours: 12, events: make(map[string]bool)}
	var since duration
	cmd := &cobra.Command{
		Use: "history POINT...", GroupID: groupEveryday,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("POINT is missing; '*' is all points")
			}
			return nil
		},
		Short: "Show the history of points",
		Long: `Show how points went: of a measurement the minimum, mean and maximum of each step, of a
state, an output or an event what changed. On a terminal draw a chart for each; a measurement
has a line for the mean and a band from minimum to maximum. Without a time it begins with the
first reading of the last 12 hours. Elsewhere, or with --table, print tables. DEVICE stands
for all its points, '*' for those of the site. --step exports a range of any length.

A site keeps each reading for 7 days, each minute and change for 90 days and each hour for ten
years, in 64 MB at most. Of a simulation it keeps the last day, in memory.`,
		Example: "  agentsite history greenhouse/temperature greenhouse/heater --since 7d\n  agentsite history greenhouse --from 2026-01-31 --to \"2026-01-31 18:00\" --csv\n  agentsite history '*' --since 90d --openmetrics >history.txt",
		RunE: func(cmd *cobra.Command, points []string) error {
			flags := cmd.Flags()
			h.lengthGiven, h.stepsGiven = flags.Changed("hours") || flags.Changed("since") || h.from.set(), flags.Changed("steps")
			switch {
			case flags.Changed("hours") && since > 0, h.from.set() && (flags.Changed("hours") || since > 0):
				return usagef("--hours, --since and --from say the same: use one of them")
			case since > 0:
				h.hours = time.Duration(since).Hours()
			case !(h.hours > 0) || math.IsInf(h.hours, 0):
				return usagef("--hours takes how far back in hours, such as 0.5, not %v", h.hours)
			}
			switch {
			case h.csv && h.table, h.csv && a.json, h.table && a.json, h.openMetrics && (h.csv || h.table || a.json):
				return usagef("use one of --table, --csv, --openmetrics and --json")
			case h.step > 0 && !h.csv && !h.openMetrics:
				return usagef("--step goes with --csv and --openmetrics; elsewhere use --steps")
			case h.step > 0 && h.stepsGiven:
				return usagef("--step and --steps say the same: leave one out")
			case h.step > 0 && time.Duration(h.step) < time.Second:
				return usagef("--step is at least 1s")
			case h.step == 0 && h.openMetrics:
				h.step = duration(time.Minute)
			}
			return a.with(func(s *session) error {
				list, err := s.listPoints(cmd.Context())
				if err == nil {
					points, err = pick(list, points, point.readable)
				}
				if err != nil {
					return err
				}
				for _, p := range list {
					h.events[p.Point] = p.Kind == device.KindEvent
				}
				return h.print(cmd.Context(), s, points)
			})
		},
		ValidArgsFunction: a.completePoints(-1, point.readable),
	}
	cmd.Flags().Float64Var(&h.hours, "hours", h.hours, "how far back, from 0.05 to 87840")
	cmd.Flags().Var(&since, "since", "how far back as a time, such as 90m or 7d")
	cmd.Flags().Var(&h.from, "from", "the beginning: a date, a date and a time here, or RFC 3339")
	cmd.Flags().Var(&h.to, "to", "the end, in the same way; now without it")
	cmd.Flags().IntVar(&h.steps, "steps", 0,
		"about how many steps to divide the time into, from 1 to 1000; without it 24, in a chart one for each column")
	cmd.Flags().BoolVar(&h.table, "table", false, "print tables, also on a terminal")
	cmd.Flags().Var(&h.step, "step", "with --csv and --openmetrics: export the range in steps of about this length, however many they are; 1s has all readings that are a second apart")
	cmd.Flags().BoolVar(&h.openMetrics, "openmetrics", false,
		"print the range for promtool tsdb create-blocks-from openmetrics, in steps of 1m without --step")
	cmd.Flags().BoolVar(&h.csv, "csv", false,
		"print lines of time,point,min,mean,max,last,held_by; a change has only the last two")
	cmd.AddCommand(a.historyImportCommand())
	return cmd
}

// history is one invocation of the command.
type history struct {
	*app
	hours                   float64
	from, to                moment
	steps                   int
	lengthGiven, stepsGiven bool
	step                    duration
	table, csv, openMetrics bool
	events                  map[string]bool // which points are events
	ahead                   time.Duration   // how far the site's clock is ahead of this machine's
}

// moment is a flag that takes a date and a time.
type moment struct{ time.Time }

func (m *moment) set() bool { return !m.IsZero() }

func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Type() string { return "date" }

func (m *moment) Set(s string) (err error) {
	if m.Time, err = parseLocal(s, time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, time.RFC3339); err == nil && !m.IsZero() {
		return nil
	}
	return errors.New("write 2026-01-31, \"2026-01-31 18:00\" or RFC 3339, such as 2026-01-31T18:00:00Z")
}

// parseLocal parses a time that is in one of some forms, local where the form has no zone.
func parseLocal(text string, forms ...string) (at time.Time, err error) {
	for _, form := range forms {
		if at, err = time.ParseInLocation(form, text, time.Local); err == nil {
			break
		}
	}
	return at, err
}

// mostSteps is the maximum that a site gives.
var mostSteps = agents.Ranges["steps"].Max

func (h *history) print(ctx context.Context, s *session, points []string) error {
	h.ahead = aheadOf(ctx, s, points[0])
	if h.step > 0 {
		return h.export(ctx, s, points)
	}
	draw := h.out.terminal() && !h.table && !h.csv && !h.json
	r := agents.HistoryRequest{Steps: new(float64(h.steps)), From: h.from.String(), To: h.to.String()}
	if r.From == "" {
		r.Hours = &h.hours
	}
	switch {
	case h.stepsGiven:
	case !draw:
		r.Steps = nil
	case h.lengthGiven:
		*r.Steps = h.columns()
	default: // so fine that the first reading's time is known
		*r.Steps = mostSteps
	}
	all, err := h.ask(ctx, s, r, points)
	switch {
	case err != nil || h.json:
		return err
	case h.csv:
		return h.printCSV(all)
	case !draw:
		return h.printTables(all)
	}
	from, to := h.timeRange(all)
	if first, any := firstReading(all); any && !h.lengthGiven && first.Sub(from) > to.Sub(from)/4 {
		h.hours = max(to.Sub(first).Hours(), 0.05)
		if !h.stepsGiven {
			*r.Steps = h.columns()
		}
		if all, err = h.ask(ctx, s, r, points); err != nil {
			return err
		}
		from, to = h.timeRange(all)
	}
	return h.draw(all, from, to)
}

// answerTime is how long an answer may be under way; by less, two clocks are not known to differ.
const answerTime = 10 * time.Second

// aheadOf returns how far a site's clock is ahead of this machine's, as a reading tells it.
func aheadOf(ctx context.Context, s *session, point string) time.Duration {
	all, err := s.Client.Read(ctx, nobody, agents.ReadRequest{Points: []string{point}})
	if err == nil && len(all.Readings) == 1 {
		if t, err := time.Parse(time.RFC3339, all.Readings[0].Time); err == nil {
			ahead := time.Until(t.Add(time.Duration(all.Readings[0].Age * float64(time.Second))))
			if ahead.Abs() > answerTime {
				return ahead
			}
		}
	}
	return 0
}

// past is a point's history with the times of its steps or changes.
type past struct {
	agents.History
	times []time.Time
	event bool
}

// ask asks for the history of each point. With --json it prints the answers.
func (h *history) ask(ctx context.Context, s *session, r agents.HistoryRequest, points []string) (all []past, err error) {
	for _, r.Point = range points {
		of, err := askSite(ctx, s, agents.Site.History, r)
		if err != nil {
			return nil, err
		}
		if h.json {
			if err := h.printJSON(of); err != nil {
				return nil, err
			}
			continue
		}
		of.Point = r.Point
		p := past{History: of, event: h.events[r.Point]}
		var texts []string
		for _, step := range p.Steps {
			texts = append(texts, step.Time)
		}
		for _, c := range p.Changes {
			texts = append(texts, c.Time)
		}
		if len(p.Steps) > 0 && len(p.Changes) > 0 {
			return nil, errors.New("the site's answer to read_history has both steps and changes")
		}
		for _, text := range texts {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return nil, fmt.Errorf("the site's answer to read_history cannot be read: %w", err)
			}
			p.times = append(p.times, at.In(time.Local))
		}
		p.sort()
		all = append(all, p)
	}
	return all, nil
}

// sort puts changes in the order of time: a site tells them as it recorded them, and its clock may
// have been set back meanwhile.
func (p *past) sort() {
	if slices.IsSortedFunc(p.times, time.Time.Compare) {
		return
	}
	order := make([]int, len(p.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.times[a].Compare(p.times[b]) })
	was := *p
	p.times, p.Steps, p.Changes = nil, nil, nil
	for _, i := range order {
		p.times = append(p.times, was.times[i])
		if len(was.Steps) > 0 {
			p.Steps = append(p.Steps, was.Steps[i])
		} else {
			p.Changes = append(p.Changes, was.Changes[i])
		}
	}
}

// form returns how times are printed: with seconds where there are some.
func form(all []past) string {
	for _, p := range all {
		for _, at := range p.times {
			if at.Second() != 0 {
				return time.DateTime
			}
		}
	}
	return "2006-01-02 15:04"
}

// printTables prints a table of measurements and one of changes. The column of points is empty,
// and left out, where there is one.
func (h *history) printTables(all []past) error {
	var steps, changes [][]string
	form := form(all)
	for _, p := range all {
		name := p.Point
		if len(all) == 1 {
			name = ""
		}
		if len(p.times) == 0 {
			if len(all) == 1 {
				return h.say("%s has no readings in this time", p.Point)
			}
			steps = append(steps, []string{name, "no readings in this time", "", "", "", ""})
		}
		for i, s := range p.Steps {
			steps = append(steps, []string{name, p.times[i].Format(form), quantity(s.Min, p.Unit), quantity(s.Mean, p.Unit), quantity(s.Max, p.Unit), quantity(s.Last, p.Unit)})
		}
		if p.Min != nil && p.Mean != nil && p.Max != nil {
			steps = append(steps, []string{name, "all", quantity(*p.Min, p.Unit), quantity(*p.Mean, p.Unit), quantity(*p.Max, p.Unit), ""})
		}
		if p.Cut {
			changes = append(changes, []string{name, "…", "", "", ""})
		}
		for i, c := range p.Changes {
			changes = append(changes, []string{name, p.times[i].Format(form), p.value(c), called(c.Holder), c.Cause})
		}
	}
	var err error
	if len(steps) > 0 {
		err = table(h.out, []string{"POINT", "FROM", "MIN", "MEAN", "MAX", "LAST"}, steps)
	}
	if err == nil && len(steps) > 0 && len(changes) > 0 {
		_, err = fmt.Fprintln(h.out)
	}
	if err == nil && len(changes) > 0 {
		err = table(h.out, []string{"POINT", "TIME", "VALUE", "HELD BY", "BECAUSE"}, changes)
	}
	return err
}

// value formats the value of a change.
func (p past) value(c agents.Event) string {
	if c.Value.IsZero() {
		return "unknown"
	}
	return show(c.Value, p.Unit)
}

// printCSV prints the steps and the changes.
func (h *history) printCSV(all []past) error {
	w := newCSV(h.out)
	for _, p := range all {
		for i := range p.Steps {
			w.step(p, i)
		}
		for i := range p.Changes {
			w.change(p, i)
		}
	}
	return w.end()
}
