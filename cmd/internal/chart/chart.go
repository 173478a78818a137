// Package chart draws time series as text for terminals. Each has a band from minimum to maximum
// and a line of the means. The charts are stacked and share the time axis.
package chart

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Step summarizes a series from At on, for the series' step length.
type Step struct {
	At             time.Time
	Min, Mean, Max float64
}

// Series is drawn as one chart. A time without a step is a gap.
type Series struct {
	Name, Unit string
	Length     time.Duration // of a step
	Steps      []Step        // oldest first
	Spans      []Span        // instead of steps
	Summary    []string      // printed beside the name
}

func (s Series) empty() bool { return len(s.Steps)+len(s.Spans) == 0 }

// Options are common to all charts of a drawing.
type Options struct {
	From, To time.Time // whose location the labels of the time axis use
	Width    int       // of a line; it is limited to MinWidth and MaxWidth
	Height   int       // rows of a chart, about
	ASCII    bool      // no other characters
}

// Limits of Options.Width.
const (
	MinWidth = 40
	MaxWidth = 240
)

// The blocks are those of code page 437, which the fonts of the Linux console have, too.
const (
	empty = ' '
	upper = '▀'
	lower = '▄'
	both  = '█'
	band  = '░'
)

// toASCII replaces the characters of this package and the usual units that are not ASCII.
var toASCII = strings.NewReplacer("▀", "'", "▄", ".", "█", "|", "░", ":", "│", "|", "┤", "+", "─", "-", "└", "+", "┬", "+", "…", "~",
	"°", "", "µ", "u", "Ω", "O", "²", "2", "³", "3")

// Draw returns the lines of a drawing. Values that are NaN or infinite are left out.
func Draw(all []Series, o Options) []string {
	o.Width = min(max(o.Width, MinWidth), MaxWidth)
	scales := make([]scale, len(all))
	labels := 0
	all = slices.Clone(all)
	for i := range all {
		if o.ASCII {
			all[i].Unit = ascii(all[i].Unit)
		}
		all[i].Steps = slices.DeleteFunc(slices.Clone(all[i].Steps), func(s Step) bool {
			return !finite(s.Min) || !finite(s.Mean) || !finite(s.Max)
		})
		scales[i] = newScale(all[i].Steps, o.Height)
		labels = max(labels, scales[i].width(), min(width(all[i].Unit), 8), all[i].rowsWidth())
	}
	plot := o.Width - labels - 2
	var lines []string
	for i, s := range all {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, heading(s, labels, o.Width)...)
		switch {
		case s.empty():
			lines = append(lines, strings.Repeat(" ", labels+2)+"no readings in this time")
			continue
		case len(s.Spans) > 0:
			lines = append(lines, renderSpans(s, o, labels, plot)...)
		default:
			for row := scales[i].rows() - 1; row >= 0; row-- {
				lines = append(lines, scales[i].label(row, labels))
			}
			for row, cells := range render(columns(s, o, plot), scales[i]) {
				lines[len(lines)-1-row] += string(cells)
			}
		}
		axis, times := timeAxis(o.From, o.To, plot)
		lines = append(lines, strings.Repeat(" ", labels+1)+"└"+axis)
		if !slices.ContainsFunc(all[i+1:], func(s Series) bool { return !s.empty() }) {
			lines = append(lines, strings.Repeat(" ", labels+2)+times)
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(cut(lines[i], o.Width), " ")
		if o.ASCII {
			lines[i] = ascii(lines[i])
		}
	}
	return lines
}

func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, toASCII.Replace(text))
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// heading returns the unit above the labels and, beside it, the name and the summary. Parts that do
// not fit get their own lines.
func heading(s Series, labels, limit int) (lines []string) {
	unit := cut(s.Unit, labels)
	line := strings.Repeat(" ", labels-width(unit)) + unit + "  " + s.Name
	below := strings.Repeat(" ", labels)
	if all := line + "  " + strings.Join(s.Summary, "  "); width(all) <= limit {
		return []string{all}
	}
	for _, text := range s.Summary {
		if len(lines) == 0 || width(line)+2+width(text) > limit {
			lines, line = append(lines, line), below
		}
		line += "  " + text
	}
	return append(lines, line)
}

// column summarizes the time of one column of the plot. One without a count is a gap.
type column struct {
	min, mean, max float64
	count          float64
}

// columns distributes the steps of a series. A column has the steps whose middle is in it. If steps
// are longer than a column, it has the step that covers the column's middle.
func columns(s Series, o Options, plot int) []column {
	all := make([]column, plot)
	each := max(o.To.Sub(o.From).Seconds(), 1) / float64(plot)
	length := max(s.Length.Seconds(), 0)
	for _, step := range s.Steps {
		at := step.At.Sub(o.From).Seconds()
		first := math.Floor((at + length/2) / each)
		last := first
		if length > each {
			first, last = math.Ceil(at/each-0.5), math.Ceil((at+length)/each-0.5)-1
		}
		for i := max(first, 0); i <= min(last, float64(plot-1)); i++ {
			all[int(i)].add(step)
		}
	}
	return all
}

func (c *column) add(s Step) {
	low, high := min(s.Min, s.Mean, s.Max), max(s.Min, s.Mean, s.Max)
	if c.count == 0 {
		c.min, c.max = low, high
	}
	c.min, c.max = min(c.min, low), max(c.max, high)
	c.mean = c.mean*(c.count/(c.count+1)) + s.Mean/(c.count+1)
	c.count++
}

// render returns the cells of each row, the lowest first. A cell has two halves for the line,
// which is drawn half-way to the means of the columns beside it.
func render(all []column, sc scale) [][]rune {
	cells := make([][]rune, sc.rows())
	for row := range cells {
		cells[row] = []rune(strings.Repeat(string(empty), len(all)))
	}
	for i, c := range all {
		if c.count == 0 {
			continue
		}
		for row := sc.half(c.min) / 2; row <= sc.half(c.max)/2; row++ {
			cells[row][i] = band
		}
		mean := sc.half(c.mean)
		from, to := mean, mean
		if i > 0 && all[i-1].count > 0 {
			before := sc.half(all[i-1].mean)
			// Of the halves between two means, each column has its own part.
			if before < mean {
				from = (before+mean)/2 + 1
			} else if before > mean {
				to = (before + mean) / 2
			}
		}
		if i+1 < len(all) && all[i+1].count > 0 {
			after := sc.half(all[i+1].mean)
			if after > mean {
				to = max(to, (after+mean)/2)
			} else if after < mean {
				from = min(from, (after+mean)/2+1)
			}
		}
		for half := from; half <= to; half++ {
			row, char := half/2, lower
			if half%2 == 1 {
				char = upper
			}
			if old := cells[row][i]; old == lower || old == upper {
				char = both
			}
			cells[row][i] = char
		}
	}
	return cells
}

// width returns the columns that a terminal needs for a text, or more: characters that may be
// wide count as such.
func width(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x1100 || r >= 0x2000 && r < 0x2300 || r >= 0x2500 && r < 0x25a0 { // letters, punctuation, blocks
		return 1
	}
	return 2
}

// cut shortens a text to a width.
func cut(text string, limit int) string {
	if width(text) <= limit {
		return text
	}
	used := 1 // for the ellipsis
	for i, r := range text {
		if used += runeWidth(r); used > limit {
			return text[:i] + "…"
		}
	}
	return text
}
