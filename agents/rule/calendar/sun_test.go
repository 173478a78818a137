package calendar

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSun compares with an ephemeris. Another table of the same form, such as the whole year that
// testdata/sun.mjs prints, comes from
// the file that SUN_TABLE names.
func TestSun(t *testing.T) {
	name := "testdata/sun.txt"
	if other := os.Getenv("SUN_TABLE"); other != "" {
		name = other
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	type worst struct {
		seconds  float64
		date     string
		rows     int
		disagree int
	}
	found := make(map[string]*worst)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var zoneName, date, rise, set string
		var p Place
		if _, err := fmt.Sscan(lines.Text(), &zoneName, &p.Lat, &p.Lon, &date, &rise, &set); err != nil {
			t.Fatal(lines.Text(), err)
		}
		w := found[zoneName]
		if w == nil {
			w = new(worst)
			found[zoneName] = w
		}
		w.rows++
		loc := zone(t, zoneName)
		for _, hour := range []string{"T00:00:00", "T23:59:59"} { // any time of the day
			gotRise, gotSet, ok := p.Sun(local(t, loc, date+hour))
			if ok != (rise != "-" && set != "-") {
				w.disagree++
				t.Logf("%s %s: rises and sets is %v", zoneName, date, ok)
				continue
			}
			if !ok {
				continue
			}
			if gotRise.Location() != loc || gotSet.Location() != loc {
				t.Errorf("%s: the location is lost", zoneName)
			}
			for got, want := range map[time.Time]string{gotRise: rise, gotSet: set} {
				wanted, err := time.Parse(time.RFC3339, want)
				if err != nil {
					t.Fatal(err)
				}
				if d := math.Abs(got.Sub(wanted).Seconds()); d > w.seconds {
					w.seconds, w.date = d, date
				}
			}
		}
	}
	limits := map[string]float64{"Atlantic/Reykjavik": 20, "Europe/Oslo": 150} // 64° and 70°
	for name, w := range found {
		limit := limits[name]
		if limit == 0 {
			limit = 10
		}
		t.Logf("%-20s worst %5.1f s (%s), %d days, %d disagree", name, w.seconds, w.date, w.rows, w.disagree/2)
		if w.seconds > limit || w.disagree > 0 {
			t.Errorf("%s: %.1f s, and may be %v; %d days disagree on polar day and night", name, w.seconds, limit, w.disagree/2)
		}
	}
	if lines.Err() != nil || len(found) != 7 {
		t.Error(lines.Err(), len(found))
	}
}

// TestSunSchedules follows the sun for a year: each day has one occurrence, near its event.
func TestSunSchedules(t *testing.T) {
	for _, c := range []struct {
		zone  string
		place Place
		all   bool // the sun rises and sets each day
	}{
		{"Europe/Berlin", Place{52.52, 13.40}, true},
		{"Australia/Lord_Howe", Place{-31.55, 159.08}, true},
		{"Atlantic/Reykjavik", Place{64.15, -21.94}, true}, // sunset after midnight in June
		{"Pacific/Kiritimati", Place{1.87, -157.4}, true},  // 24 hours ahead of its sun
		{"UTC", Place{-33.87, 151.21}, true},
		{"UTC", Place{0, 180}, true}, // noon at midnight
		{"UTC", Place{0, -180}, true},
		{"Europe/Oslo", Place{69.65, 18.96}, false},
	} {
		loc := zone(t, c.zone)
		for _, text := range []string{"sunset", "sunrise+1h30m", "Sunrise - 12h", "sunset + 12h"} {
			s := mustParse(t, text)
			if !s.UsesSun() {
				t.Errorf("%q does not use the sun", text)
			}
			at := time.Date(2027, 1, 1, 0, 0, 0, 0, loc)
			keys := make(map[string]bool)
			for at.Year() < 2028 {
				next, key, ok := s.Next(at, &c.place)
				if !ok || !next.After(at) || keys[key] || key != next.Format(keyLayout) || next.Second() != 0 || next.Location() != loc {
					t.Fatalf("%s %q after %v: %v %q %v", c.zone, text, at, next, key, ok)
				}
				keys[key] = true
				if gap := next.Sub(at).Hours(); c.all && len(keys) > 1 && math.Abs(gap-24) > 0.2 {
					t.Errorf("%s %q: %v follows %v", c.zone, text, next, at)
				}
				for _, since := range []time.Time{next, time.Unix(0, 0)} {
					if last, lastKey, ok := s.Last(next, since, &c.place); !ok || !last.Equal(next) || lastKey != key {
						t.Errorf("%s %q: Last(%v, %v) is %v", c.zone, text, next, since, last)
					}
				}
				if last, _, ok := s.Last(next.Add(-1), at.Add(1), &c.place); ok {
					t.Errorf("%s %q: Last is %v between %v and %v", c.zone, text, last, at, next)
				}
				at = next
			}
			if days := len(keys); c.all && (days < 365 || days > 367) {
				t.Errorf("%s %q: %d in a year", c.zone, text, days)
			}
		}
	}
	// 30 December 2011 did not take place in Samoa, nor did its sunset.
	apia, samoa := zone(t, "Pacific/Apia"), &Place{-13.83, -171.77}
	if _, key, ok := mustParse(t, "sunset").Next(local(t, apia, "2011-12-29T23:00:00"), samoa); !ok || !strings.HasPrefix(key, "2011-12-31T") {
		t.Errorf("after 29 December: %s", key)
	}
	// An offset is elapsed time: from the second pass of the repeated hour, four hours to sunrise.
	berlin := zone(t, "Europe/Berlin")
	if at, _, _ := mustParse(t, "sunrise - 4h").Next(local(t, berlin, "2026-10-25T00:00:00"), &Place{52.52, 13.40}); at.UTC().Hour() != 1 {
		t.Errorf("four hours before sunrise: %v", at)
	}
}

func TestPolar(t *testing.T) {
	now := time.Date(2026, 6, 21, 12, 0, 0, 0, time.UTC)
	for _, p := range []Place{{90, 0}, {-90, 0}, {89, 0}, {math.NaN(), 0}, {0, math.Inf(1)}, {91, 0}, {0, -181}} {
		if rise, set, ok := p.Sun(now); ok {
			t.Errorf("%v: %v %v", p, rise, set)
		}
	}
	for _, p := range []Place{{90, 0}, {math.NaN(), math.NaN()}} {
		if at, _, ok := mustParse(t, "sunset").Next(now, &p); ok {
			t.Errorf("%v: %v", p, at)
		}
		if at, _, ok := mustParse(t, "sunset").Last(now, time.Time{}, &p); ok {
			t.Errorf("%v: %v", p, at)
		}
	}
	tromsø := &Place{69.65, 18.96}
	if _, key, ok := mustParse(t, "sunset").Next(now, tromsø); !ok || !strings.HasPrefix(key, "2026-07-2") {
		t.Errorf("the first sunset after midsummer: %s", key)
	}
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"52.52, 13.40": {52.52, 13.40}, " -33.87,151.21 ": {-33.87, 151.21}, "90,-180": {90, -180}, "+1 , .5": {1, 0.5},
	} {
		if got, err := ParsePlace(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, names := range map[string]string{
		"": "52.52, 13.40", "52.52": "52.52, 13.40", "52,52, 13,40": "52.52, 13.40", "52.52N, 13.4E": "52.52, 13.40", "NaN, 0": "52.52, 13.40", "inf, 0": "52.52, 13.40", "0x1, 1": "52.52, 13.40",
		"1e1, 0": "52.52, 13.40", "1,2,3": "52.52, 13.40", "139.69, 35.68": "-90", "0, 180.1": "-90", "-90.01, 0": "-90", strings.Repeat("1", 70) + ",1": "64",
	} {
		if p, err := ParsePlace(text); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}
