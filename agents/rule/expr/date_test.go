package expr

import (
	"testing"
	"time"
)

// TestDates: months, dates of every year and of one, and holidays, each until midnight.
func TestDates(t *testing.T) {
	uses := &Uses{Holiday: func(t time.Time) bool { return t.Day() == 25 && t.Month() == time.December }}
	day := func(y int, m time.Month, d int) *world { return &world{t: time.Date(y, m, d, 22, 0, 0, 0, time.UTC)} }
	for _, c := range []struct {
		text string
		at   *world
		want Truth
	}{
		{"month == dec", day(2026, 12, 25), True}, {"month != dec", day(2026, 12, 25), False},
		{"month between apr..sep", day(2026, 9, 30), True}, {"month between apr..sep", day(2026, 10, 1), False},
		{"month between oct..apr", day(2026, 1, 1), True}, {"month between oct..apr", day(2026, 5, 1), False},
		{"date == dec 25", day(2026, 12, 25), True}, {"dec 25 == date", day(2027, 12, 25), True}, {"date is dec 24", day(2026, 12, 25), False},
		{"date between dec 24..jan 6", day(2027, 1, 6), True}, {"date between dec 24..jan 6", day(2027, 1, 7), False}, {"date between dec 24 and jan 6", day(2026, 12, 24), True},
		{"date == feb 29", day(2028, 2, 29), True}, {"date between jun 1..aug 31", day(2026, 7, 1), True},
		{"date == 2026-12-25", day(2026, 12, 25), True}, {"date == 2026-12-25", day(2027, 12, 25), False},
		{"date >= 2026-12-25 and 2027-01-01 > date", day(2026, 12, 31), True}, {"date > 2026-12-25", day(2027, 1, 1), True},
		{"date between 2026-12-20..2027-01-06", day(2027, 1, 6), True}, {"date between 2026-12-20..2027-01-06", day(2027, 12, 25), False},
		{"holiday", day(2026, 12, 25), True}, {"not holiday and weekday between mon..fri", day(2026, 12, 24), True}, {"holiday == off", day(2026, 12, 24), True},
	} {
		p, err := uses.Compile(c.text, lookup, planNames)
		if err != nil {
			t.Errorf("%s:\n%v", c.text, err)
			continue
		}
		if got, next := p.Eval(c.at.of(p)); got != c.want || next != 2*time.Hour || !p.UsesClock() {
			t.Errorf("%s on %v is %v, next %v", c.text, c.at.t, got, next)
		}
		if got, next := p.Eval((&world{}).of(p)); got != Unknown || next != time.Minute || p.Cause((&world{}).of(p)) != "the time of day" {
			t.Errorf("%s without a clock is %v, next %v, %s", c.text, got, next, p.Cause((&world{}).of(p)))
		}
	}
	states := func(string) (Point, bool) {
		return Point{Kind: "state", Values: []string{"holiday", "date", "dec"}}, true
	}
	for _, text := range []string{"a/mode == holiday", "a/mode != date", "a/mode == dec"} {
		if _, err := new(Uses).Compile(text, states, planNames); err != nil {
			t.Errorf("%s: a state cannot have it: %v", text, err)
		}
	}
}
