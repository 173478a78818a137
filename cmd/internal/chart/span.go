package chart

import (
	"slices"
	"strings"
	"time"
)

// Span is a time in which a series had one value, or a moment at which something happened. It is
// drawn in the row of its value.
type Span struct {
	From, To time.Time
	Row      string
	Off      bool // drawn as a thin line
}

// maxRows limits the rows of a series; further values share the last one.
const maxRows = 8

// rows returns the names of the rows, in the order in which they appear.
func (s Series) rows() (names []string) {
	for _, span := range s.Spans {
		if !slices.Contains(names, span.Row) && len(names) < maxRows {
			names = append(names, span.Row)
		}
	}
	return names
}

func (s Series) rowsWidth() (most int) {
	for _, name := range s.rows() {
		most = max(most, min(width(name), 10))
	}
	return most
}

// renderSpans returns the lines of a series of spans. A column that a span covers is full, one of
// which it covers a part is dotted.
func renderSpans(s Series, o Options, labels, plot int) (lines []string) {
	names := s.rows()
	each := max(o.To.Sub(o.From).Seconds(), 1) / float64(plot)
	for row, name := range names {
		covered, off := make([]float64, plot), make([]bool, plot)
		for _, span := range s.Spans {
			at := slices.Index(names, span.Row)
			if at < 0 {
				at = len(names) - 1
			}
			if at != row {
				continue
			}
			from, to := span.From.Sub(o.From).Seconds()/each, span.To.Sub(o.From).Seconds()/each
			for i := int(min(max(from, 0), float64(plot))); i < plot && float64(i) <= to; i++ {
				part := min(to, float64(i+1)) - max(from, float64(i))
				switch {
				case span.Off:
					off[i] = true
				case from == to:
					covered[i] = 1
				default:
					covered[i] += max(part, 0)
				}
			}
		}
		cells := []rune(strings.Repeat(string(empty), plot))
		for i := range cells {
			switch {
			case covered[i] > 0.99:
				cells[i] = both
			case covered[i] > 0:
				cells[i] = band
			case off[i]:
				cells[i] = '─'
			}
		}
		label := cut(name, labels)
		lines = append(lines, strings.Repeat(" ", labels-width(label))+label+" │"+string(cells))
	}
	return lines
}
