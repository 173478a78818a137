package calendar

import (
	"testing"
	"time"
)

// TestDay: where the sun does not cross the horizon, it has set or risen for good.
func TestDay(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		place Place
		month time.Month
		up    bool
	}{
		{Place{69.65, 18.96}, time.December, false}, {Place{69.65, 18.96}, time.June, true},
		{Place{-75, 0}, time.December, true}, {Place{-75, 0}, time.June, false},
		{Place{90, 0}, time.June, true}, {Place{-90, 0}, time.June, false},
	} {
		now := time.Date(2026, c.month, 21, 12, 0, 0, 0, zone)
		rise, set := c.place.Day(now)
		if up := rise.Before(now) && now.Before(set); up != c.up || up == (set.Before(now) && now.Before(rise)) {
			t.Errorf("%v in %v: it rises %v and sets %v", c.place, c.month, rise, set)
		}
	}
}
