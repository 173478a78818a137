package calendar

import (
	"strings"
	"testing"
	"time"
)

// TestList: a list has the occurrences of all its schedules, once each.
func TestList(t *testing.T) {
	loc, place := zone(t, "Europe/Berlin"), &Place{52.52, 13.40}
	for text, want := range map[string]string{
		"7:30":                 "2026-11-23T07:30 2026-11-24T07:30 2026-11-25T07:30",
		"19:00,7:30 , 12:00":   "2026-11-23T07:30 2026-11-23T12:00 2026-11-23T19:00 2026-11-24T07:30",
		"7:30, 7:30, 07:30":    "2026-11-23T07:30 2026-11-24T07:30",
		"0 7,12 * * mon,tue":   "2026-11-23T07:00 2026-11-23T12:00 2026-11-24T07:00",
		"12:00, Sunset - 1h":   "2026-11-23T12:00 2026-11-23T15:03 2026-11-24T12:00",
		"sunrise, 8:00, 23:59": "2026-11-23T07:42 2026-11-23T08:00 2026-11-23T23:59 2026-11-24T07:43",
	} {
		l, err := ParseList(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		at := local(t, loc, "2026-11-23T00:00:00")
		for key := range strings.SplitSeq(want, " ") {
			before := at
			next, got, ok := l.Next(before, place)
			if !ok || got != key {
				t.Errorf("%q after %v: %s, want %s", text, before, got, key)
			}
			if last, lastKey, ok := l.Last(next.Add(time.Second), before.Add(1), place); !ok || !last.Equal(next) || lastKey != got {
				t.Errorf("%q: Last is %v %s, want %v %s", text, last, lastKey, next, got)
			}
			at = next
		}
	}
	for _, text := range []string{"", "7:30,", "7:30, 25:00", "7:30 19:00", "7:30, 12", strings.Repeat("7:30,", 16) + "8:00", strings.Repeat("sunset, ", 50) + "7:30"} {
		if l, err := ParseList(text); err == nil {
			t.Errorf("%q is taken as %v", text, l)
		}
	}
}
