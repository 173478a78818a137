package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/chart"
	"agentsite/device"
	"agentsite/device/ucum"
)

func (h *history) draw(all []past, from, to time.Time) error {
	rows := 10
	if len(all) > 1 {
		rows = 6
	}
	series := make([]chart.Series, len(all))
	for i, p := range all {
		series[i] = p.series(from, to)
	}
	lines := chart.Draw(series, chart.Options{From: from, To: to, Width: h.out.width(),
		Height: rows, ASCII: !unicodeTerminal()})
	_, err := fmt.Fprintln(h.out, strings.Join(lines, "\n"))
	return err
}

// firstReading returns the start of the oldest step, or of the oldest change.
func firstReading(all []past) (first time.Time, any bool) {
	for _, p := range all {
		if len(p.times) > 0 && (!any || p.times[0].Before(first)) {
			first, any = p.times[0], true
		}
	}
	return first, any
}

// timeRange returns the time that the charts share. Without a requested end it ends now, or with
// the newest reading if the site's clock differs.
func (h *history) timeRange(all []past) (from, to time.Time) {
	length := time.Duration(min(h.hours, 1e6) * float64(time.Hour))
	if to = time.Now().Add(h.ahead); h.from.set() {
		length = to.Sub(h.from.Time)
	}
	if h.to.set() {
		if to = h.to.Time; h.from.set() {
			length = to.Sub(h.from.Time)
		}
		return to.Add(-length), to
	}
	var newest time.Time
	var step time.Duration
	for _, p := range all {
		if n := len(p.times); n > 0 && p.times[n-1].After(newest) {
			newest, step = p.times[n-1], p.step()
		}
	}
	if !newest.IsZero() && !h.from.set() && (newest.After(to) || newest.Add(step).Before(to.Add(-length))) {
		to = newest.Add(step)
	}
	return to.Add(-length), to
}

func (p past) step() time.Duration {
	return time.Duration(min(max(p.Length, 0), 1e9) * float64(time.Second))
}

// series returns the chart's data of a history: cleaned texts, and values in a unit whose numbers
// are short.
func (p past) series(from, to time.Time) chart.Series {
	s := chart.Series{Name: clean(p.Point), Unit: clean(ucum.Symbol(p.Unit)), Length: p.step()}
	switch {
	case len(p.Changes) > 0 && slices.ContainsFunc(p.Changes, func(e agents.Event) bool { return e.Value.Type() == device.TypeNumber }):
		return p.level(s, from, to)
	case len(p.Changes) > 0:
		return p.spans(s, to)
	case len(p.Steps) == 0 || p.Min == nil || p.Mean == nil || p.Max == nil:
		return s
	}
	scale := 1.0
	most := max(math.Abs(*p.Min), math.Abs(*p.Max))
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
	last := p.Steps[len(p.Steps)-1].Last
	s.Summary = []string{"min " + p.amount(*p.Min), "mean " + p.amount(*p.Mean), "max " + p.amount(*p.Max), "last " + p.amount(last)}
	return s
}

// each calls yield for each value with its time. The last one lasts until to.
func (p past) each(to time.Time, yield func(c agents.Event, from, to time.Time)) {
	for i, c := range p.Changes {
		end := to
		if i+1 < len(p.times) {
			end = p.times[i+1]
		}
		if !end.Before(p.times[i]) {
			yield(c, p.times[i], end)
		}
	}
}

// spans draws states, switches and events.
func (p past) spans(s chart.Series, to time.Time) chart.Series {
	on, count := time.Duration(0), 0
	p.each(to, func(c agents.Event, from, to time.Time) {
		if c.Value.IsZero() {
			return
		}
		name, off := clean(c.Value.String()), false
		if c.Value.Type() == device.TypeBool {
			if off = !c.Value.Bool(); !off {
				on, count = on+to.Sub(from), count+1
			}
			name = device.Bool(true).String()
		}
		if p.event {
			to = from
		}
		s.Spans = append(s.Spans, chart.Span{From: from, To: to, Row: name, Off: off})
	})
	switch {
	case p.event:
		s.Summary = []string{times(len(p.Changes))}
	case count > 0:
		s.Summary = []string{"on for " + span(on.Seconds()), times(count)}
	}
	return s
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// level draws a number that stays until it is changed.
func (p past) level(s chart.Series, from, to time.Time) chart.Series {
	const steps = chart.MaxWidth
	s.Length = max(to.Sub(from)/steps, time.Millisecond)
	p.each(to, func(c agents.Event, begin, end time.Time) {
		if c.Value.Type() != device.TypeNumber {
			return
		}
		v := c.Value.Number()
		for i := max(begin.Sub(from)/s.Length, 0); i < steps && from.Add(i*s.Length).Before(end); i++ {
			s.Steps = append(s.Steps, chart.Step{At: from.Add(i * s.Length), Min: v, Mean: v, Max: v})
		}
	})
	s.Summary = []string{"last " + p.value(p.Changes[len(p.Changes)-1])}
	return s
}

// amount is quantity without long rows of zeros.
func (p past) amount(n float64) string {
	if size := math.Abs(n); size >= 1e12 || size > 0 && size < 1e-6 {
		return clean(strings.TrimSpace(strconv.FormatFloat(n, 'g', 4, 64) + " " + ucum.Symbol(p.Unit)))
	}
	return clean(quantity(n, p.Unit))
}

// columns returns how many steps to ask for: about one for each column of a chart.
func (h *history) columns() float64 {
	return float64(min(max(h.out.width(), chart.MinWidth), chart.MaxWidth) - 8)
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
