package chart

import (
	"math"
	"strconv"
	"strings"
)

// scale maps values to rows. Its ticks are multiples of a step of 1, 2 or 5 times a power of ten.
// Each is in the middle of a row.
type scale struct {
	step        float64
	first, last float64 // ticks, in steps
	each        int     // rows from tick to tick
}

// newScale returns the scale for steps, of about that many rows.
func newScale(all []Step, height int) scale {
	const most = 1e300 // beyond, a difference may be infinite
	low, high := most, -most
	for _, s := range all {
		low = max(min(low, s.Min, s.Mean, s.Max), -most)
		high = min(max(high, s.Min, s.Mean, s.Max), most)
	}
	height = min(max(height, 5), 50)
	ticks := min(max(height/2, 3), 4)
	size := max(math.Abs(low), math.Abs(high))
	var sc scale
	switch {
	case len(all) == 0:
		return scale{step: 1, last: 1, each: 1}
	case size < 1/most:
		sc = scale{step: 1, first: -1, last: 1}
	case high-low < size*1e-6: // a flat line, in the middle
		sc.step = power(math.Floor(math.Log10(size)) - 1)
		sc.first, sc.last = math.Floor(low/sc.step), math.Ceil(high/sc.step)
		if sc.first == sc.last {
			sc.first, sc.last = sc.first-1, sc.last+1
		}
	default:
		sc.step = nice((high - low) / float64(ticks))
		sc.first, sc.last = math.Floor(low/sc.step+1e-9), math.Ceil(high/sc.step-1e-9)
	}
	sc.each = max(int(math.Round(float64(height-1)/(sc.last-sc.first))), 1)
	return sc
}

// power is ten to the power of exp, which is below zero for fractions.
func power(exp float64) float64 { return math.Pow10(int(exp)) }

// nice rounds up to 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	unit := power(math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*unit*(1+1e-9) {
			return n * unit
		}
	}
	return 10 * unit
}

func (s scale) rows() int { return int(s.last-s.first)*s.each + 1 }

// half returns the half row of a value, from 0 at the bottom.
func (s scale) half(v float64) int {
	y := (v/s.step - s.first) * float64(s.each)
	return int(min(max(math.Floor(2*y+1+1e-6), 0), float64(2*s.rows()-1)))
}

// label returns the beginning of a row: a tick's value, and the axis.
func (s scale) label(row, width int) string {
	if row%s.each != 0 {
		return strings.Repeat(" ", width) + " │"
	}
	text := s.format(s.first + float64(row/s.each))
	return strings.Repeat(" ", width-len(text)) + text + " ┤"
}

// format formats a tick with the digits that tell it from the next.
func (s scale) format(tick float64) string {
	if tick == 0 {
		return "0"
	}
	size := math.Floor(math.Log10(max(math.Abs(s.first), math.Abs(s.last))*s.step) + 1e-9)
	digit := math.Floor(math.Log10(s.step) + 1e-9)
	if size >= 7 || digit < -5 {
		text := strconv.FormatFloat(tick*s.step, 'e', int(min(max(size-digit, 0), 9)), 64)
		return shorten.Replace(text)
	}
	return strconv.FormatFloat(tick*s.step, 'f', int(max(-digit, 0)), 64)
}

// shorten writes exponents as people do.
var shorten = strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-")

// width returns the width of the longest label.
func (s scale) width() (n int) {
	for row := 0; row < s.rows(); row += s.each {
		n = max(n, len(s.format(s.first+float64(row/s.each))))
	}
	return n
}
