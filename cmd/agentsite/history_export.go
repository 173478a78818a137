package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// exporter writes the steps and the changes of one point after the other.
type exporter interface {
	step(p past, i int)
	change(p past, i int)
	end() error
}

// export writes a range of any length: it asks for so much at a time as a site answers.
func (h *history) export(ctx context.Context, s *session, points []string) error {
	to := time.Now().Add(h.ahead)
	if h.to.set() {
		to = h.to.Time
	}
	from := to.Add(-time.Duration(min(h.hours, 1e6) * float64(time.Hour)))
	if h.from.set() {
		from = h.from.Time
	}
	var w exporter = newCSV(h.out)
	if h.openMetrics {
		w = &openMetrics{w: bufio.NewWriter(h.out), until: to}
	}
	progress, done := h.progress()
	defer done()
	for i, p := range points {
		if len(points) > 1 {
			progress("%d of %d: %s", i+1, len(points), p)
		}
		if err := h.exportPoint(ctx, s, w, p, from, to); err != nil {
			return err
		}
	}
	done()
	return w.end()
}

func (h *history) exportPoint(ctx context.Context, s *session, w exporter, point string, from, to time.Time) error {
	const least = time.Second
	page := time.Duration(h.step) * time.Duration(mostSteps)
	if page <= 0 { // longer than a time.Duration
		page = to.Sub(from)
	}
	most := page
	last := time.Time{} // the last written one; the first entry of a page may be from before it
	for from.Before(to) {
		end := from.Add(page)
		if end.After(to) {
			end = to
		}
		r := agents.HistoryRequest{From: from.Format(time.RFC3339Nano), To: end.Format(time.RFC3339Nano), Steps: new(mostSteps)}
		if rest := end.Sub(from); rest < page { // the last page has the same steps
			r.Steps = new(max(1, float64((rest+time.Duration(h.step)-1)/time.Duration(h.step))))
		}
		all, err := h.ask(ctx, s, r, []string{point})
		if err != nil {
			return err
		}
		p := all[0]
		switch {
		case p.Cut && page > least:
			page /= 2
			continue
		case p.Cut:
			return fmt.Errorf("%s changed more often after %s than the site's answer has room for", clean(point), from.Format(time.RFC3339))
		}
		for i, at := range p.times {
			if !at.After(last) {
				continue
			}
			if last = at; len(p.Steps) > 0 {
				w.step(p, i)
			} else {
				w.change(p, i)
			}
		}
		from = end
		page = min(2*page, most) // after a busy hour come quiet ones
	}
	return nil
}

// csvExporter writes RFC 4180: times in UTC and values in the site's unit.
type csvExporter struct{ w *csv.Writer }

func newCSV(out io.Writer) csvExporter {
	w := csv.NewWriter(out)
	w.UseCRLF = true
	w.Write([]string{"time", "point", "min", "mean", "max", "last", "held_by"})
	return csvExporter{w}
}

func (e csvExporter) at(p past, i int) string { return p.times[i].UTC().Format(time.RFC3339Nano) }

func (e csvExporter) step(p past, i int) {
	s := p.Steps[i]
	e.w.Write([]string{e.at(p, i), clean(p.Point), fmt.Sprint(s.Min), fmt.Sprint(s.Mean), fmt.Sprint(s.Max), fmt.Sprint(s.Last), ""})
}

func (e csvExporter) change(p past, i int) {
	c := p.Changes[i]
	value := clean(c.Value.String())
	if c.Value.IsZero() {
		value = ""
	}
	e.w.Write([]string{e.at(p, i), clean(p.Point), "", "", "", value, clean(c.Holder)})
}

func (e csvExporter) end() error {
	e.w.Flush()
	return e.w.Error()
}

// openMetrics writes the OpenMetrics text format (version 1.0), from which promtool creates blocks.
// A step is a sample of its last value at its end. A text has a series for each value that it had,
// of which one is 1.
type openMetrics struct {
	w     *bufio.Writer
	begun bool
	until time.Time
	point string
	text  *string // of the point, before
}

func (m *openMetrics) sample(p past, labels string, n float64, at time.Time) {
	if !m.begun {
		m.begun = true
		m.w.WriteString("# TYPE agentsite_reading gauge\n# HELP agentsite_reading What was read of a point of a site, or written to it.\n")
	}
	if p.Unit != "" {
		labels += ",unit=" + label(clean(p.Unit))
	}
	fmt.Fprintf(m.w, "agentsite_reading{point=%s%s} %s %s\n", label(clean(p.Point)), labels, strconv.FormatFloat(n, 'g', -1, 64), strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64))
}

// labelEscapes are those that the format has for a label's value.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(s string) string { return `"` + labelEscapes.Replace(s) + `"` }

func (m *openMetrics) step(p past, i int) {
	at := p.times[i].Add(p.step())
	if at.After(m.until) {
		at = m.until
	}
	m.sample(p, "", p.Steps[i].Last, at)
}

func (m *openMetrics) change(p past, i int) {
	if m.point != p.Point {
		m.point, m.text = p.Point, nil
	}
	at, v := p.times[i], p.Changes[i].Value
	switch v.Type() {
	case device.TypeNumber:
		m.sample(p, "", v.Number(), at)
	case device.TypeBool:
		m.sample(p, "", map[bool]float64{true: 1}[v.Bool()], at)
	case device.TypeText:
		text := clean(v.Text())
		if m.text != nil && *m.text != text {
			m.sample(p, ",value="+label(*m.text), 0, at)
		}
		m.sample(p, ",value="+label(text), 1, at)
		m.text = &text
	}
}

func (m *openMetrics) end() error {
	m.w.WriteString("# EOF\n")
	return m.w.Flush()
}
