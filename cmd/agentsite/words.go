package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"agentsite/device"
	"agentsite/device/ucum"
)

// clean turns a text into one line without characters that a terminal interprets: control
// characters and those that change the direction of writing.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case steers(r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, s)
}

// steers reports whether a terminal may interpret a character or hide it.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// escape escapes the characters of a JSON value that a terminal interprets. The value stays the
// same: such characters occur in strings only.
func escape(value []byte) []byte {
	var out []byte
	for len(value) > 0 {
		r, n := utf8.DecodeRune(value)
		char := value[:n]
		value = value[n:]
		switch {
		case !steers(r):
			out = append(out, char...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// cleanLines is clean, line by line.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// show formats the value of a point.
func show(v device.Value, unitCode string) string {
	if v.Type() == device.TypeNumber {
		return quantity(v.Number(), unitCode)
	}
	return v.String()
}

func quantity(n float64, unitCode string) string {
	switch {
	case unitCode == "By":
		return byteSize(n)
	case unitCode == "s" && n >= 1e9: // a Unix time, not a duration
		return time.Unix(int64(min(n, 1e11)), 0).Format("2006-01-02 15:04")
	case unitCode == "s" && n >= 60:
		return span(n)
	}
	switch u := ucum.Symbol(unitCode); u {
	case "":
		return number(n)
	case "°":
		return number(n) + u
	default:
		return number(n) + " " + u
	}
}

// number formats four digits, or all digits before the point.
func number(n float64) string {
	decimals := 3
	if n != 0 && !math.IsInf(n, 0) && !math.IsNaN(n) {
		decimals = min(max(3-int(math.Floor(math.Log10(math.Abs(n)))), 0), 9)
	}
	s := strconv.FormatFloat(n, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func byteSize(n float64) string {
	prefixes := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i, decimals := 0, 0
	for math.Abs(n) >= 1024 && i < len(prefixes)-1 {
		n /= 1024
		i, decimals = i+1, 1
	}
	return strconv.FormatFloat(n, 'f', decimals, 64) + " " + prefixes[i]
}

// span formats a duration in its two largest units. It rounds up: a lease lasts at least as
// long.
func span(seconds float64) string {
	if seconds < 10 {
		return number(math.Ceil(seconds*10-1e-6)/10) + " s"
	}
	n := int64(min(math.Ceil(seconds-1e-6), 1e15))
	for _, u := range []struct {
		large, small string
		size, part   int64
	}{{"d", "h", 24 * 3600, 3600}, {"h", "min", 3600, 60}, {"min", "s", 60, 1}} {
		if n < u.size {
			continue
		}
		if rest := n % u.size / u.part; rest > 0 {
			return fmt.Sprintf("%d %s %d %s", n/u.size, u.large, rest, u.small)
		}
		return fmt.Sprintf("%d %s", n/u.size, u.large)
	}
	return fmt.Sprintf("%d s", n)
}

// ago formats an age in its largest unit.
func ago(seconds float64) string {
	switch {
	case seconds < 1:
		return "now"
	case seconds < 120:
		return fmt.Sprintf("%.0f s ago", math.Floor(seconds))
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f min ago", math.Floor(seconds/60))
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f h ago", math.Floor(seconds/3600))
	}
	return fmt.Sprintf("%.0f d ago", math.Floor(seconds/86400))
}
