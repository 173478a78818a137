package host

import (
	"bytes"
	"math"
	"strconv"
)

// number reads a decimal number; anything else, or anything around it, is NaN. The kernel
// counts in 64 bits: more than that is not from it.
func number(b []byte) float64 {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(math.Abs(n) <= 1<<64) {
		return math.NaN()
	}
	return n
}

// line returns the rest of the first line that begins with name; nil if none does.
func line(b []byte, name string) []byte {
	prefix := []byte(name)
	for l := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(l, prefix); ok {
			return rest
		}
	}
	return nil
}

// field returns the i-th word of a line, counted from 0, and nil when it has not
// so many.
func field(line []byte, i int) []byte {
	for word := range bytes.FieldsSeq(line) {
		if i == 0 {
			return word
		}
		i--
	}
	return nil
}

// firstNumber reads the first word of a file.
func firstNumber(b []byte, values []float64) { values[0] = number(field(b, 0)) }

// percent is part of whole, between 0 and 100 whatever a racing kernel counted.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return math.Round(1000*min(max(part/whole, 0), 1)) / 10
}
