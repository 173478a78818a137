package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/chart"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) historyCommand() *cobra.Command {
	h := history{app: a, hours: 12}
	var since duration
	cmd := &cobra.Command{
		Use: "history POINT...", GroupID: groupThings,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly("POINT")(cmd, args[:min(len(args), 1)])
		},
		Short: "Show the history of measurements",
		Long: `Show how measurements went in the last hours: the minimum, mean and maximum of each step.
On a terminal draw a chart for each, with a line for the mean and a band from minimum to
maximum. Without --hours and --since it begins with the first reading. Elsewhere, or with
--table, print a table. DEVICE stands for all its measurements.

A site keeps each minute for 90 days and each hour for ten years, in 64 MB at most. Of a
simulation it keeps the last day, in memory.`,
		Example: "  agentsite history greenhouse/temperature greenhouse/humidity --since 6h\n  agentsite history greenhouse --hours 1 --steps 12 --csv",
		RunE: func(cmd *cobra.Command, points []string) error {
			flags := cmd.Flags()
			h.lengthGiven, h.stepsGiven = flags.Changed("hours") || flags.Changed("since"), flags.Changed("steps")
			switch {
			case flags.Changed("hours") && since > 0:
				return usagef("--hours and --since say the same: leave one out")
			case since > 0:
				h.hours = time.Duration(since).Hours()
			case !(h.hours > 0) || math.IsInf(h.hours, 0):
				return usagef("--hours takes how far back in hours, such as 0.5, not %v", h.hours)
			}
			if h.csv && h.table || h.csv && a.json || h.table && a.json {
				return usagef("use one of --table, --csv and --json")
			}
			return a.with(func(s *session) error {
				list, err := s.listPoints(cmd.Context())
				if err == nil {
					points, err = pick(list, points, point.hasHistory)
				}
				if err != nil {
					return err
				}
				return h.print(cmd.Context(), s, points)
			})
		},
		ValidArgsFunction: a.completePoints(-1, point.hasHistory),
	}
	cmd.Flags().Float64Var(&h.hours, "hours", h.hours, "how far back, from 0.05 to 87840")
	cmd.Flags().Var(&since, "since", "how far back as a time, such as 90m")
	cmd.Flags().IntVar(&h.steps, "steps", 0, "how many steps to divide the time into, from 1 to 288; without it\n24, in a chart one for each column")
	cmd.Flags().BoolVar(&h.table, "table", false, "print a table, also on a terminal")
	cmd.Flags().BoolVar(&h.csv, "csv", false, "print lines of time,point,min,mean,max")
	return cmd
}

// history is one invocation of the command.
type history struct {
	*app
	hours                   float64
	steps                   int
	lengthGiven, stepsGiven bool
	table, csv              bool
}

// mostSteps is the maximum that a site gives.
const mostSteps = 288

func (h *history) print(ctx context.Context, s *session, points []string) error {
	draw := h.out.terminal() && !h.table && !h.csv && !h.json
	r := agents.HistoryRequest{Hours: &h.hours, Steps: new(float64(h.steps))}
	switch {
	case h.stepsGiven:
	case !draw:
		r.Steps = nil
	case h.lengthGiven:
		*r.Steps = h.columns()
	default: // so fine that the first reading's time is known
		*r.Steps = mostSteps
	}
	all, err := s.histories(ctx, r, points)
	switch {
	case err != nil || h.json:
		return err
	case h.csv:
		return h.printCSV(all)
	case !draw:
		return h.printTable(all)
	}
	from, to := timeRange(all, h.hours)
	if first, any := firstReading(all); any && !h.lengthGiven && first.Sub(from) > to.Sub(from)/4 {
		h.hours = max(to.Sub(first).Hours(), 0.05)
		if !h.stepsGiven {
			*r.Steps = h.columns()
		}
		if all, err = s.histories(ctx, r, points); err != nil {
			return err
		}
		from, to = timeRange(all, h.hours)
	}
	return h.draw(all, from, to)
}

// past is a point's history with the times of its steps.
type past struct {
	agents.History
	times []time.Time
}

// histories asks for the history of each point. With --json it prints the answers.
func (s *session) histories(ctx context.Context, r agents.HistoryRequest, points []string) (all []past, err error) {
	for _, r.Point = range points {
		var p past
		said, err := s.ask(ctx, "read_history", r, &p.History)
		if err != nil {
			return nil, err
		}
		p.Point = r.Point
		for _, step := range p.Steps {
			at, err := time.Parse(time.RFC3339, step.Time)
			if err != nil {
				return nil, fmt.Errorf("the site's answer to read_history cannot be read: %w", err)
			}
			p.times = append(p.times, at.In(time.Local))
		}
		if !said {
			all = append(all, p)
		}
	}
	return all, nil
}

// printTable prints one table. The column of points is empty, and left out, where there is one.
func (h *history) printTable(all []past) error {
	var rows [][]string
	form := "2006-01-02 15:04"
	for _, p := range all {
		for _, at := range p.times {
			if at.Second() != 0 {
				form = "2006-01-02 15:04:05"
			}
		}
	}
	for _, p := range all {
		name := p.Point
		if len(all) == 1 {
			name = ""
		}
		if len(p.Steps) == 0 {
			if len(all) == 1 {
				return h.say("%s has no readings in this time", p.Point)
			}
			rows = append(rows, []string{name, "no readings in this time", "", "", ""})
			continue
		}
		add := func(when string, least, mean, most float64) {
			rows = append(rows, []string{name, when, quantity(least, p.Unit), quantity(mean, p.Unit), quantity(most, p.Unit)})
		}
		for i, s := range p.Steps {
			add(p.times[i].Format(form), s.Min, s.Mean, s.Max)
		}
		add("all", p.Min, p.Mean, p.Max)
	}
	return table(h.out, []string{"POINT", "FROM", "MIN", "MEAN", "MAX"}, rows)
}

// printCSV prints RFC 4180: times in UTC and numbers in the site's unit.
func (h *history) printCSV(all []past) error {
	w := csv.NewWriter(h.out)
	w.UseCRLF = true
	w.Write([]string{"time", "point", "min", "mean", "max"})
	for _, p := range all {
		for i, s := range p.Steps {
			w.Write([]string{p.times[i].UTC().Format(time.RFC3339), clean(p.Point), fmt.Sprint(s.Min), fmt.Sprint(s.Mean), fmt.Sprint(s.Max)})
		}
	}
	w.Flush()
	return w.Error()
}

func (h *history) draw(all []past, from, to time.Time) error {
	rows := 10
	if len(all) > 1 {
		rows = 6
	}
	series := make([]chart.Series, len(all))
	for i, p := range all {
		series[i] = p.series()
	}
	lines := chart.Draw(series, chart.Options{From: from, To: to, Width: h.width(), Height: rows, ASCII: !unicodeTerminal()})
	_, err := fmt.Fprintln(h.out, strings.Join(lines, "\n"))
	return err
}

// firstReading returns the start of the oldest step.
func firstReading(all []past) (first time.Time, any bool) {
	for _, p := range all {
		if len(p.times) > 0 && (!any || p.times[0].Before(first)) {
			first, any = p.times[0], true
		}
	}
	return first, any
}

// timeRange returns the time that the charts share. It ends now, or, by the clock of a site that
// is set to another time, with the newest reading.
func timeRange(all []past, hours float64) (from, to time.Time) {
	length := time.Duration(min(hours, 1e6) * float64(time.Hour))
	to = time.Now()
	var newest time.Time
	var step time.Duration
	for _, p := range all {
		if n := len(p.times); n > 0 && p.times[n-1].After(newest) {
			newest, step = p.times[n-1], p.step()
		}
	}
	if !newest.IsZero() && (newest.After(to) || newest.Add(step).Before(to.Add(-length))) {
		to = newest.Add(step)
	}
	return to.Add(-length), to
}

func (p past) step() time.Duration {
	return time.Duration(min(max(p.Step, 0), 1e9) * float64(time.Second))
}

// series returns what is drawn of a history: cleaned texts, and values in a unit whose numbers
// are short.
func (p past) series() chart.Series {
	s := chart.Series{Name: clean(p.Point), Unit: clean(unit(p.Unit)), Length: p.step()}
	if len(p.Steps) == 0 {
		return s
	}
	scale := 1.0
	most := max(math.Abs(p.Min), math.Abs(p.Max))
	switch {
	case p.Unit == "By":
		for _, name := range []string{"KiB", "MiB", "GiB", "TiB"} {
			if most < 1024*scale {
				break
			}
			s.Unit, scale = name, scale*1024
		}
	case p.Unit == "s" && most < 1e9: // above, it is a Unix time
		for _, u := range []struct {
			name string
			size float64
		}{{"min", 60}, {"h", 3600}, {"d", 86400}} {
			if most >= 2*u.size {
				s.Unit, scale = u.name, u.size
			}
		}
	}
	for i, step := range p.Steps {
		s.Steps = append(s.Steps, chart.Step{At: p.times[i], Min: step.Min / scale, Mean: step.Mean / scale, Max: step.Max / scale})
	}
	last := p.Steps[len(p.Steps)-1].Mean
	s.Summary = []string{"min " + p.amount(p.Min), "mean " + p.amount(p.Mean), "max " + p.amount(p.Max), "last " + p.amount(last)}
	return s
}

// amount is quantity without long rows of zeros.
func (p past) amount(n float64) string {
	if size := math.Abs(n); size >= 1e12 || size > 0 && size < 1e-6 {
		return clean(strings.TrimSpace(strconv.FormatFloat(n, 'g', 4, 64) + " " + unit(p.Unit)))
	}
	return clean(quantity(n, p.Unit))
}

// columns returns how many steps to ask for: about one for each column of a chart.
func (h *history) columns() float64 {
	return float64(min(max(h.width(), chart.MinWidth), chart.MaxWidth) - 8)
}

// width returns the width of the terminal; 80 where it is not known.
func (h *history) width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := h.out.Writer.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// unicodeTerminal reports whether the locale has more characters than ASCII. Windows has no such
// variables.
func unicodeTerminal() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return runtime.GOOS == "windows"
}
