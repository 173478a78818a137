package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// importedTime is a time of a file: an instant, or a local time, which may be two instants or none.
type importedTime struct {
	instants []time.Time
	local    bool
}

// zoned finds the parts of a time as RFC 3339, ISO 8601, SQL, Python and Go write it, and of one with
// the day first and dots.
var zoned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d{4})[-/](\d\d)[-/](\d\d)|(\d\d)\.(\d\d)\.(\d{4}))(?:[T_ ]\s*(\d\d:\d\d)(:\d\d)?([.,]\d{1,9})?\s*(?:(Z|UTC|GMT)|([+-]\d\d)(?::?(\d\d))?(?: (?:[A-Z]{3,4}|[+-]\d\d))?)?)?$`)
})

// slashed finds a date of which the month or the day is first.
var slashed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,2}/\d{1,2}/\d{2,4}\b`) })

// numberUnits are the units in which a number may count the time since 1970. A number is taken for one
// of them where it is between 2000 and now; the ranges do not overlap.
var numberUnits = []struct {
	name string
	unit time.Duration
}{{"seconds", time.Second}, {"milliseconds", time.Millisecond}, {"microseconds", time.Microsecond}, {"nanoseconds", time.Nanosecond}}

var year2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// parseTime parses a time of the file. All of its numbers count in one unit.
func (im *importer) parseTime(text string) (at importedTime, err error) {
	if text != "" && strings.Trim(text, "0123456789.eE+-") == "" && !strings.Contains(text[1:], "-") {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return im.parseNumberTime(text, n)
		}
	}
	m := zoned().FindStringSubmatch(strings.ToUpper(text))
	if m == nil && slashed().MatchString(text) {
		return at, fmt.Errorf("%.60q has the month or the day first, and nothing says which: write 2026-01-31 18:00", text)
	}
	if m == nil {
		return at, fmt.Errorf("%.60q is no time; write RFC 3339, such as 2026-01-31T18:00:00Z", text)
	}
	day := m[1] + "-" + m[2] + "-" + m[3]
	if m[4] != "" {
		day = m[6] + "-" + m[5] + "-" + m[4]
	}
	clock := "00:00:00"
	if m[7] != "" {
		clock = m[7] + ":00"
		if m[8] != "" {
			clock = m[7] + m[8]
		}
	}
	wall, err := time.Parse(time.DateTime, day+" "+clock+m[9])
	if err != nil {
		return at, fmt.Errorf("%.60q is no time; its month, day or clock does not exist", text)
	}
	switch {
	case m[10] != "":
		return importedTime{instants: []time.Time{wall}}, nil
	case m[11] != "":
		hours, _ := strconv.Atoi(m[11])
		minutes, _ := strconv.Atoi(m[12])
		if m[11][0] == '-' {
			minutes = -minutes
		}
		return importedTime{instants: []time.Time{wall.Add(-time.Duration(hours)*time.Hour - time.Duration(minutes)*time.Minute)}}, nil
	}
	at.local = true
	if at.instants = instantsOf(wall, im.zone); len(at.instants) == 0 {
		return at, fmt.Errorf("%.60s did not exist in %s: the clock was put forward over it; if this clock keeps one time all year, say which, such as --zone +01:00", text, im.zoneName())
	}
	return at, nil
}

// parseNumberTime returns the time that a number counts.
func (im *importer) parseNumberTime(text string, n float64) (at importedTime, err error) {
	now := time.Now()
	for _, u := range numberUnits {
		if count := float64(u.unit); n*count < float64(year2000.UnixNano()) || n*count > float64(now.Add(24*time.Hour).UnixNano()) {
			continue
		}
		switch {
		case strings.ContainsAny(text, "eE"):
			return at, fmt.Errorf("%.60s was rounded, as spreadsheets do: export the times as texts or as whole numbers", text)
		case im.unit != "" && im.unit != u.name:
			return at, fmt.Errorf("%.60s counts %s, and another time of this file counts %s", text, u.name, im.unit)
		}
		im.unit = u.name
		seconds := n * float64(u.unit) / float64(time.Second)
		return importedTime{instants: []time.Time{time.UnixMilli(int64(seconds * 1000))}}, nil
	}
	day := func(layout string) bool {
		d, err := time.Parse(layout, text)
		return err == nil && d.After(year2000) && d.Before(now.AddDate(1, 0, 0))
	}
	switch serial := float64(now.Unix())/86400 + 25569; {
	case n >= 36526 && n <= serial+366:
		return at, fmt.Errorf("%.60s may be a date as Excel counts days, about %s: format the column as text, such as 2026-01-31 18:00, and export it again", text, time.Unix(int64((n-25569)*86400), 0).UTC().Format("2006-01-02 15:04"))
	case day("20060102"), day("200601021504"), day("20060102150405"):
		return at, fmt.Errorf("%.60s may be a date without dashes: write %s-%s-%s, with the time behind it",
			text, text[:4], text[4:6], text[6:8])
	}
	return at, fmt.Errorf("%.60s is no time between 2000 and now in seconds, milliseconds, microseconds or nanoseconds since 1970; write RFC 3339, such as 2026-01-31T18:00:00Z", text)
}

// instantsOf returns the instants at which a clock of a zone showed a time, the earlier one first. wall
// has that time as UTC.
func instantsOf(wall time.Time, zone *time.Location) (all []time.Time) {
	for _, beside := range []time.Duration{-36 * time.Hour, 36 * time.Hour} {
		_, offset := wall.Add(beside).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, shown := at.In(zone).Zone(); shown == offset && (len(all) == 0 || !all[0].Equal(at)) {
			all = append(all, at)
		}
	}
	if len(all) == 2 && all[1].Before(all[0]) {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// choose returns the instant of a time behind the last one of the point. Of an hour that the clock had
// twice, the rows are in the order in which they were recorded: the second begins where the time goes back.
func (p *importedPoint) choose(text string, at importedTime) (time.Time, error) {
	first := at.instants[0]
	if len(at.instants) == 2 {
		p.twice++
		first, second := at.instants[0], at.instants[1]
		again := p.Rows > 0 && p.To.Equal(first)
		switch shift := second.Sub(first); {
		case again && p.step < shift && !p.repeats:
			return first, fmt.Errorf("%.60s is there twice in a row, in an hour that the clock had twice: keep the rows in the order in which they were recorded, or write times with a zone", text)
		case again && p.step >= shift, first.Before(p.To):
			if second.Before(p.To) {
				return first, fmt.Errorf("%.60s goes back once more in an hour that the clock had twice: write times with a zone, such as 2026-01-31T18:00:00+01:00", text)
			}
			return second, nil
		}
		return first, nil
	}
	switch back := p.To.Sub(first); {
	case back <= 0:
		return first, nil
	case at.local && back <= 2*time.Hour:
		return first, fmt.Errorf("%.60s goes back by %v: if the clock was put back here, say with --zone in which zone it was, such as --zone Europe/Berlin; else the rows of %s are not in the order of time", text, back, p.Point)
	}
	return first, fmt.Errorf("%.60s comes after a later time of %s: sort the rows by time", text, p.Point)
}

// zoneFlag is a flag that takes a time zone.
type zoneFlag struct{ *time.Location }

func (z *zoneFlag) String() string {
	if z.Location == nil {
		return ""
	}
	return z.Location.String()
}

func (z *zoneFlag) Type() string { return "zone" }

func (z *zoneFlag) Set(text string) (err error) {
	if at, wrong := time.Parse("Z07:00", text); wrong == nil {
		_, offset := at.Zone()
		z.Location = time.FixedZone(text, offset)
		return nil
	}
	if z.Location, err = time.LoadLocation(text); err != nil || text == "" {
		return fmt.Errorf("write a zone such as Europe/Berlin, or +01:00")
	}
	return nil
}
