package calendar

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustParse(t testing.TB, text string) Schedule {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func local(t testing.TB, loc *time.Location, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02T15:04:05", text, loc)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestChangesOfTime follows schedules over both changes of three zones.
func TestChangesOfTime(t *testing.T) {
	for _, c := range []struct {
		zone, schedule string
		after          string   // UTC
		want           []string // key and UTC
	}{
		{"Europe/Berlin", "2:30", "2026-03-28T00:00:00Z", []string{
			"2026-03-28T02:30 2026-03-28T01:30:00Z", "2026-03-29T02:30 2026-03-29T01:00:00Z", "2026-03-30T02:30 2026-03-30T00:30:00Z"}},
		{"Europe/Berlin", "*/20 * * * *", "2026-03-29T00:30:00Z", []string{
			"2026-03-29T01:40 2026-03-29T00:40:00Z", "2026-03-29T02:00 2026-03-29T01:00:00Z", "2026-03-29T03:20 2026-03-29T01:20:00Z"}},
		{"Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00 2026-03-29T01:00:00Z", "2026-03-30T03:00 2026-03-30T01:00:00Z"}},
		{"Europe/Berlin", "2:30", "2026-10-24T12:00:00Z", []string{
			"2026-10-25T02:30 2026-10-25T00:30:00Z", "2026-10-26T02:30 2026-10-26T01:30:00Z"}},
		{"Europe/Berlin", "*/30 * * * *", "2026-10-25T00:00:00Z", []string{
			"2026-10-25T02:30 2026-10-25T00:30:00Z", "2026-10-25T03:00 2026-10-25T02:00:00Z"}},
		{"Europe/Berlin", "2:30", "2026-10-25T01:10:00Z", []string{"2026-10-26T02:30 2026-10-26T01:30:00Z"}}, // from the second pass
		{"America/New_York", "2:00", "2026-03-08T00:00:00Z", []string{
			"2026-03-08T02:00 2026-03-08T07:00:00Z", "2026-03-09T02:00 2026-03-09T06:00:00Z"}},
		{"America/New_York", "2:59", "2026-03-08T00:00:00Z", []string{"2026-03-08T02:59 2026-03-08T07:00:00Z"}},
		{"America/New_York", "1:00", "2026-10-31T12:00:00Z", []string{
			"2026-11-01T01:00 2026-11-01T05:00:00Z", "2026-11-02T01:00 2026-11-02T06:00:00Z"}},
		{"America/New_York", "0 * * * *", "2026-11-01T04:30:00Z", []string{
			"2026-11-01T01:00 2026-11-01T05:00:00Z", "2026-11-01T02:00 2026-11-01T07:00:00Z"}},
		{"Australia/Lord_Howe", "2:15", "2026-10-02T16:00:00Z", []string{ // half an hour is skipped
			"2026-10-04T02:15 2026-10-03T15:30:00Z", "2026-10-05T02:15 2026-10-04T15:15:00Z"}},
		{"Australia/Lord_Howe", "2:30", "2026-10-03T00:00:00Z", []string{"2026-10-04T02:30 2026-10-03T15:30:00Z"}},
		{"Australia/Lord_Howe", "*/15 * * * *", "2026-04-04T14:20:00Z", []string{ // and repeated
			"2026-04-05T01:30 2026-04-04T14:30:00Z", "2026-04-05T01:45 2026-04-04T14:45:00Z", "2026-04-05T02:00 2026-04-04T15:30:00Z"}},
		{"Pacific/Apia", "7:30", "2011-12-29T12:00:00Z", []string{ // without a 30 December
			"2011-12-29T07:30 2011-12-29T17:30:00Z", "2011-12-30T07:30 2011-12-30T10:00:00Z", "2011-12-31T07:30 2011-12-30T17:30:00Z"}},
		{"America/Caracas", "2:45", "2007-12-08T12:00:00Z", []string{ // from 3:00 back to 2:30, for years
			"2007-12-09T02:45 2007-12-09T06:45:00Z", "2007-12-10T02:45 2007-12-10T07:15:00Z"}},
		{"Europe/Berlin", "0:10", "2028-12-30T12:00:00Z", []string{ // day 366 of a year
			"2028-12-31T00:10 2028-12-30T23:10:00Z", "2029-01-01T00:10 2028-12-31T23:10:00Z", "2029-01-02T00:10 2029-01-01T23:10:00Z"}},
	} {
		loc, s := zone(t, c.zone), mustParse(t, c.schedule)
		at, err := time.ParseInLocation(time.RFC3339, c.after, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		at = at.In(loc)
		for _, want := range c.want {
			before := at
			var key string
			var ok bool
			at, key, ok = s.Next(before, nil)
			if got := key + " " + at.UTC().Format(time.RFC3339); !ok || got != want {
				t.Errorf("%s %q after %v: %s, want %s", c.zone, c.schedule, before, got, want)
			}
			if last, lastKey, ok := s.Last(at, before, nil); !ok || !last.Equal(at) || lastKey != key {
				t.Errorf("%s %q: Last(%v) is %v %s %v", c.zone, c.schedule, at, last, lastKey, ok)
			}
		}
	}
}

// TestCron checks the fields without changes of time.
func TestCron(t *testing.T) {
	for _, c := range [][]string{ // schedule, after, occurrences
		{"*/5 8-18 * * mon-fri", "2026-11-20T18:50:00", "2026-11-20T18:55", "2026-11-23T08:00", "2026-11-23T08:05"},
		{"0 0 13 * fri", "2026-11-01T00:00:00", "2026-11-06T00:00", "2026-11-13T00:00", "2026-11-20T00:00", "2026-11-27T00:00", "2026-12-04T00:00"},
		{"0 0 13 * fri", "2026-12-11T00:00:00", "2026-12-13T00:00", "2026-12-18T00:00"},
		{"0 0 */10 * mon", "2026-01-01T00:00:00", "2026-05-11T00:00", "2026-06-01T00:00"}, // an asterisk: both
		{"0 12 * * 7", "2026-11-22T11:59:59", "2026-11-22T12:00", "2026-11-29T12:00"},
		{"0 12 * * SAT-SUN", "2026-11-22T12:00:00", "2026-11-28T12:00", "2026-11-29T12:00"},
		{"59 23 31 12 *", "2026-01-01T00:00:00", "2026-12-31T23:59", "2027-12-31T23:59"},
		{"0 0 29 2 *", "2025-03-01T00:00:00", "2028-02-29T00:00", "2032-02-29T00:00"},
		{"0 0 29 2 *", "2096-02-29T00:00:00"}, // 2100 is no leap year
		{"0 0 29 2 sun", "2026-02-23T00:00:00", "2027-02-07T00:00"},
		{"0 0 29 2 */7", "2026-01-01T00:00:00"}, // the 29th on a Sunday: 2032
		{"0 0 29 2 */7", "2028-01-01T00:00:00", "2032-02-29T00:00"},
		{"3,1-2 05 01 jan,mar *", "2026-01-01T05:01:00", "2026-01-01T05:02", "2026-01-01T05:03", "2026-03-01T05:01"},
		{"10-40/15,59 0 1 1 *", "2026-01-01T00:00:00", "2026-01-01T00:10", "2026-01-01T00:25", "2026-01-01T00:40", "2026-01-01T00:59", "2027-01-01T00:10"},
		{" 07:05\t", "2026-11-22T07:05:00.5", "2026-11-23T07:05"},
	} {
		s, at := mustParse(t, c[0]), local(t, time.UTC, c[1])
		if s.UsesSun() {
			t.Errorf("%q uses the sun", c[0])
		}
		for _, want := range c[2:] {
			next, key, ok := s.Next(at, nil)
			if !ok || key != want || next.Format(keyLayout+":05.9") != want+":00" {
				t.Errorf("%q after %v: %s at %v, want %s", c[0], at, key, next, want)
			}
			at = next
		}
		if len(c) == 2 {
			if next, _, ok := s.Next(at, nil); ok {
				t.Errorf("%q after %v: %v, want none within five years", c[0], at, next)
			}
		}
	}
}

func TestLast(t *testing.T) {
	s := mustParse(t, "0 0 29 2 *")
	for _, c := range []struct{ at, since, want string }{
		{"2026-11-22T12:00:00", "2020-01-01T00:00:00", "2024-02-29T00:00"},
		{"2024-02-29T00:00:00", "2024-02-29T00:00:00", "2024-02-29T00:00"},
		{"2024-02-28T23:59:59", "2024-01-01T00:00:00", ""},
		{"2026-11-22T12:00:00", "2024-02-29T00:00:01", ""},
		{"2026-11-22T12:00:00", "2027-01-01T00:00:00", ""},
		{"2103-12-01T00:00:00", "0001-01-01T00:00:00", ""}, // 2096 is more than five years ago
	} {
		if _, key, ok := s.Last(local(t, time.UTC, c.at), local(t, time.UTC, c.since), nil); key != c.want || ok != (c.want != "") {
			t.Errorf("Last(%s, %s) is %q, want %q", c.at, c.since, key, c.want)
		}
	}
	for _, s := range []Schedule{{}, mustParse(t, "sunset")} {
		if _, _, ok := s.Next(time.Unix(0, 0), nil); ok {
			t.Errorf("%v occurs", s)
		}
		if _, _, ok := s.Last(time.Unix(0, 0), time.Time{}, nil); ok {
			t.Errorf("%v occurred", s)
		}
	}
}

// TestRefused: each is refused, and the text names the part that is wrong.
func TestRefused(t *testing.T) {
	for text, names := range map[string]string{
		"": "7:30", "  \t": "7:30", strings.Repeat("1,", 200) + " * * * *": "256",
		"24:00": "23:59", "7:60": "23:59", "7:5": "23:59", "7:30pm": "23:59", "7:30:00": "23:59", "-1:30": "23:59", "7:": "23:59", ":": "23:59",
		"sunset 20m": "20m", "sunset -": "20m", "sunset - 20": "20m", "sunset - m": "20m", "sunset + h": "20m", "sunset + 1h30": "20m",
		"sunset + 1.5h": "20m", "sunset + 13h": "12h", "sunsets": "20m", "sunrise - -5m": "20m", "sunrise+999h999m": "12h", "sunset − 5m": "20m",
		"@daily": "mon-fri", "* * * *": "mon-fri", "0 * * * * *": "6", "every 5m": "mon-fri",
		"60 * * * *": "minute", "* 24 * * *": "hour", "* * 0 * *": "day of month", "* * 32 * *": "day of month", "* * * 13 *": "month", "* * * 0 *": "month",
		"* * * * 8": "day of week", "* * * * monday": "day of week", "* * * mon *": "month", "1e1 * * * *": "minute", "007 * * * *": "minute", "-5 * * * *": "minute",
		"*/0 * * * *": "1 to 59", "*/60 * * * *": "1 to 59", "*/ * * * *": "1 to 59", "1-5/x * * * *": "1 to 59", "*/5/5 * * * *": "1 to 59", "5/15 * * * *": "5-59/15",
		"1,,2 * * * *": "minute", "*,5 * * * *": `"*,5"`, "5-1 * * * *": "5-59,0-1", "* * * * sat-mon": "sat-7,0-mon", "1-2-3 * * * *": "minute", "*-5 * * * *": "minute",
		"0 0 31 2 *": "31", "0 0 30,31 feb *": "feb", "0 0 31 4,6,9,11 *": "31", "0 0 31 2 */2": "31", "\x00 * * * *": "minute", "٥ * * * *": "minute",
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q is taken as %v", text, s)
		} else if !strings.Contains(err.Error(), names) || len(err.Error()) > 1500 {
			t.Errorf("%q: %v; that names no %q", text, err, names)
		}
	}
	for _, text := range []string{"0 0 31 2 mon", "0 0 29 2 *", "0 0 30 2,3 *", "0 0 * 2 *", "59 23 31 12 7", "* * * * fri-0"} {
		mustParse(t, text)
	}
}

// TestZones: the program takes the zones of the system, and does not carry its own.
func TestZones(t *testing.T) {
	zone(t, "Europe/Berlin")
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range file.Imports {
			if imp.Path.Value == `"time/tzdata"` {
				t.Errorf("%s carries the zones: 414 kB more in each program", name)
			}
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"7:30", "sunset - 20m", "sunrise + 1h30m", "*/5 8-18 * * mon-fri", "0 0 29 2 */7", "0 0 31 2 *", "5-1/0,* * * * sun"} {
		f.Add(text, int64(1774746000), 52.52, 13.40)
	}
	zones := []*time.Location{time.UTC, zone(f, "Europe/Berlin"), zone(f, "Australia/Lord_Howe"), zone(f, "Pacific/Apia"), zone(f, "America/Juneau")}
	f.Fuzz(func(t *testing.T, text string, seconds int64, lat, lon float64) {
		s, err := Parse(text)
		if err != nil {
			if len(err.Error()) > 1500 {
				t.Errorf("%d bytes of error", len(err.Error()))
			}
			return
		}
		at := time.Unix(seconds%(1<<35), seconds&0xfff).In(zones[uint64(seconds)%uint64(len(zones))]) // a thousand years
		place := &Place{lat, lon}
		next, key, ok := s.Next(at, place)
		if !ok {
			return
		}
		if !next.After(at) || next.Sub(at) > (maxDays+3)*24*time.Hour {
			t.Errorf("%q after %v: %v", text, at, next)
		}
		for _, until := range []time.Time{next, next.Add(time.Nanosecond)} {
			if last, lastKey, ok := s.Last(until, at, place); !ok || !last.Equal(next) || lastKey != key {
				t.Errorf("%q: Last(%v) is %v %s, Next is %v %s", text, until, last, lastKey, next, key)
			}
		}
		if last, _, ok := s.Last(next.Add(-1), at.Add(1), place); ok {
			t.Errorf("%q: Next(%v) is %v, and left out %v", text, at, next, last)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	loc, place := zone(b, "Europe/Berlin"), &Place{52.52, 13.40}
	at := time.Date(2028, 3, 1, 0, 0, 0, 0, loc)
	for _, text := range []string{"* * * * *", "7:30", "0 0 29 2 *", "0 0 29 2 */7", "sunset"} {
		b.Run(text, func(b *testing.B) {
			s := mustParse(b, text)
			for b.Loop() {
				s.Next(at, place)
			}
		})
	}
}
