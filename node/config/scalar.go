package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
)

// The forms of numbers. 010 is refused because it may mean eight, and .nan and .inf because no
// hardware accepts them.
var (
	decimal = lazy(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	hex     = lazy(`^0x[0-9a-fA-F]+$`)
)

// lazy compiles a pattern when it is first used.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// parseNumber parses a finite number.
func parseNumber(text string) (float64, error) {
	if hex().MatchString(text) {
		n, err := strconv.ParseUint(text, 0, 64)
		return float64(n), err
	}
	if !decimal().MatchString(text) {
		return 0, errors.New("not a number")
	}
	n, err := strconv.ParseFloat(text, 64)
	if math.IsInf(n, 0) {
		return 0, errors.New("too large")
	}
	return n, err
}

// parseBool parses a bool, quoted or not.
func parseBool(text string) (on, ok bool) {
	switch text {
	case "on", "true":
		return true, true
	case "off", "false":
		return false, true
	}
	return false, false
}

// boolHint returns the hint for words such as yes or Off.
func boolHint(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "true", "1":
		return "; write on"
	case "no", "off", "false", "0":
		return "; write off"
	}
	return ""
}

// parseValue parses a value of an output: on, off or a number.
func parseValue(n *node) (device.Value, error) {
	if on, ok := parseBool(n.text); ok {
		return device.Bool(on), nil
	}
	number, err := parseNumber(n.text)
	if err != nil || n.quoted {
		return device.Value{}, fmt.Errorf("takes on, off or a number, not %s%s",
			n.what(), cmp.Or(boolHint(n.text), numberHint(n, decimal())))
	}
	return device.Number(number), nil
}

// parseDuration parses a duration that is not negative.
func parseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if _, err := parseNumber(text); err == nil && !strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("needs a unit: write %ss for seconds, or %sm for minutes", text, text)
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("takes a time such as 10s, 1m30s or 24h, not %q%s", clip(text), timeHint(text))
	case d < 0:
		return 0, fmt.Errorf("takes a time that is not negative, not %s", clip(text))
	}
	return d, nil
}

// inWords matches a time with its unit in words.
var inWords = lazy(`^(?i)([0-9]+)(?:[.,]([0-9]+))?\s*(ms|s|m|h|sec|min|minute|hr|hour|d|day|w|week)[a-z]?s?\.?$`)

// clockLike matches a time as hours, minutes and seconds.
var clockLike = lazy(`^([0-9]{1,3}):([0-5][0-9]):([0-5][0-9])$`)

// timeHint returns the hint for a time such as 1 day, 5 minutes or 2,5m; "" for others.
func timeHint(text string) string {
	if m := clockLike().FindStringSubmatch(text); m != nil {
		d, _ := time.ParseDuration(m[1] + "h" + m[2] + "m" + m[3] + "s")
		return "; write " + device.FormatDuration(d)
	}
	m := inWords().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return ""
	}
	n, err := strconv.ParseFloat(m[1]+"."+m[2]+"0", 64)
	if err != nil {
		return ""
	}
	unit := strings.ToLower(m[3])
	switch unit {
	case "d", "day":
		n, unit = 24*n, "h"
	case "w", "week":
		n, unit = 7*24*n, "h"
	case "ms":
	default:
		unit = unit[:1]
	}
	return fmt.Sprintf("; write %s%s", strconv.FormatFloat(n, 'f', -1, 64), unit)
}

// parseRange parses a range such as "0..90".
func parseRange(text string) (device.Range, error) {
	low, high, ok := strings.Cut(text, "..")
	lo, errLo := parseNumber(strings.TrimSpace(low))
	hi, errHi := parseNumber(strings.TrimSpace(high))
	if !ok || errLo != nil || errHi != nil {
		return device.Range{}, fmt.Errorf("takes two numbers such as 0..90, not %q", clip(text))
	}
	r := device.Range{Min: lo, Max: hi}
	if lo > hi {
		return r, fmt.Errorf("has its numbers in the wrong order; write %v", device.Range{Min: hi, Max: lo})
	}
	if lo == hi {
		return r, fmt.Errorf("has only one value; write two different numbers, such as 0..90")
	}
	return r, nil
}

// Unlimited is the value of max_on: unlimited, the same number as guard.Unlimited.
const Unlimited = time.Duration(math.MaxInt64)

// limit is a duration or the word unlimited.
type limit time.Duration

func (l *limit) UnmarshalText(text []byte) error {
	if string(text) == "unlimited" {
		*l = limit(Unlimited)
		return nil
	}
	d, err := parseDuration(string(text))
	*l = limit(d)
	return err
}
