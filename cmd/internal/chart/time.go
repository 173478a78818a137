package chart

import (
	"strings"
	"time"
)

// tickSteps are the distances between the labels of the time axis, and their formats: with the date
// if the axis has more than a day.
var tickSteps = []struct {
	months, days, seconds int
	short, long           string
}{
	{0, 0, 1, time.TimeOnly, "Jan 2 15:04:05"}, {0, 0, 5, time.TimeOnly, "Jan 2 15:04:05"}, {0, 0, 15, time.TimeOnly, "Jan 2 15:04:05"},
	{0, 0, 60, clock, dated}, {0, 0, 2 * 60, clock, dated}, {0, 0, 5 * 60, clock, dated}, {0, 0, 10 * 60, clock, dated},
	{0, 0, 15 * 60, clock, dated}, {0, 0, 30 * 60, clock, dated}, {0, 0, 3600, clock, dated}, {0, 0, 2 * 3600, clock, dated},
	{0, 0, 3 * 3600, clock, dated}, {0, 0, 6 * 3600, clock, dated}, {0, 0, 12 * 3600, clock, dated},
	{0, 1, 0, "Jan 2", "Jan 2"}, {0, 2, 0, "Jan 2", "Jan 2"}, {0, 7, 0, "Jan 2", "Jan 2"}, {0, 14, 0, "Jan 2", "Jan 2"},
	{1, 0, 0, month, month}, {2, 0, 0, month, month}, {3, 0, 0, month, month}, {6, 0, 0, month, month},
	{12, 0, 0, "2006", "2006"}, {24, 0, 0, "2006", "2006"}, {60, 0, 0, "2006", "2006"}, {120, 0, 0, "2006", "2006"}, {600, 0, 0, "2006", "2006"},
}

const (
	clock = "15:04"
	dated = "Jan 2 15:04"
	month = "Jan 2006"
)

// timeAxis returns the axis with its ticks, and the line of labels below it.
func timeAxis(from, to time.Time, plot int) (axis, labels string) {
	line, text := []rune(strings.Repeat("─", plot)), []byte(strings.Repeat(" ", plot))
	length := to.Sub(from)
	used := -2 // the end of the last label
	put := func(at time.Time, form string) {
		column := int(at.Sub(from).Seconds() / max(length.Seconds(), 1) * float64(plot))
		label := at.Format(form)
		start := min(max(column-len(label)/2, 0), plot-len(label))
		if column < 0 || column >= plot || start < used+2 {
			return
		}
		line[column], used = '┬', start+len(label)
		copy(text[start:], label)
	}
	for _, step := range tickSteps {
		each := time.Duration(step.months*30+step.days)*24*time.Hour + time.Duration(step.seconds)*time.Second
		form := step.short
		if length > 24*time.Hour {
			form = step.long
		}
		room := max(each.Seconds()/max(length.Seconds(), 1)*float64(plot), 0)
		if room < float64(len(form)+3) {
			continue
		}
		y, m, d := from.Date()
		hour := 0
		switch {
		case step.months > 0:
			y, m, d = y-y%max(step.months/12, 1), 1, 1
		case each < time.Hour:
			hour = from.Hour()
		}
		// Ticks are at round times of the wall clock, also where it is changed in between.
		for n := range 4000 {
			at := time.Date(y, m+time.Month(n*step.months), d+n*step.days, hour, 0, n*step.seconds, 0, from.Location())
			if at.After(to) {
				break
			}
			put(at, form)
		}
		break
	}
	if used < 0 {
		put(from, dated)
	}
	return string(line), string(text)
}
