package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
)

// pastOf returns a history of steps of a minute from a time on, with these means.
func pastOf(name, unit string, from time.Time, means ...float64) past {
	p := past{History: agents.History{Point: name, Unit: unit, Step: 60, Min: means[0], Max: means[len(means)-1]}}
	for i, v := range means {
		p.Steps = append(p.Steps, agents.Step{Min: v, Mean: v, Max: v})
		p.times = append(p.times, from.Add(time.Duration(i)*time.Minute))
	}
	return p
}

// A chart has no character of a site's texts that a terminal interprets, and stays within the
// terminal whatever the site's numbers and times are.
func TestDrawHostile(t *testing.T) {
	t.Setenv("COLUMNS", "60")
	t.Setenv("LC_ALL", "C.UTF-8")
	var b bytes.Buffer
	h := history{app: &app{out: &output{Writer: &b}}, hours: 12}
	all := []past{
		pastOf("a/\x1b[2Jt\u202e", "V\x1b]0;x\x07", time.Now().Add(-time.Hour), 1, 2, 3),
		pastOf("a/far", "Cel", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1e308, -1e308),
		pastOf("a/old", "Cel", time.Time{}, 5e-324),
	}
	all[0].Step, all[1].Step = 1e300, -1
	from, to := timeRange(all, h.hours)
	if err := h.draw(all, from, to); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, acts) || len([]rune(line)) > 60 {
			t.Errorf("%q", line)
		}
	}
}

// TestTimeRange: the axis ends now, or with the newest reading of a site whose clock is not set.
func TestTimeRange(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		all  []past
		want time.Time
	}{
		{"nothing", nil, now},
		{"lately", []past{pastOf("a/t", "", now.Add(-time.Hour), 1)}, now},
		{"in 1970", []past{pastOf("a/t", "", time.Unix(3600, 0), 1)}, time.Unix(3660, 0)},
		{"ahead", []past{pastOf("a/t", "", now.Add(time.Hour), 1)}, now.Add(time.Hour + time.Minute)},
	} {
		from, to := timeRange(tt.all, 2)
		if d := to.Sub(tt.want).Abs(); d > time.Minute || to.Sub(from) != 2*time.Hour {
			t.Errorf("%s: from %v to %v, want to %v", tt.name, from, to, tt.want)
		}
	}
}

func TestChartUnits(t *testing.T) {
	for _, tt := range []struct {
		unit string
		max  float64
		want string
		top  float64
	}{
		{"Cel", 21, "°C", 21}, {"By", 512, "bytes", 512}, {"By", 3 << 30, "GiB", 3}, {"By", 1 << 60, "TiB", 1 << 20},
		{"s", 90, "s", 90}, {"s", 7200, "h", 2}, {"s", 1e6, "d", 1e6 / 86400}, {"s", 1.7e9, "s", 1.7e9},
	} {
		if s := pastOf("a/t", tt.unit, time.Now(), 0, tt.max).series(); s.Unit != tt.want || s.Steps[1].Max != tt.top {
			t.Errorf("%v %s: %v %s", tt.max, tt.unit, s.Steps[1].Max, s.Unit)
		}
	}
}

func TestUnicodeTerminal(t *testing.T) {
	for _, tt := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "de_DE.UTF-8", true}, {"", "", "C.utf8", true}, {"C", "", "de_DE.UTF-8", false}, {"", "de_DE.UTF-8", "C", true}, {"", "", "POSIX", false},
	} {
		t.Setenv("LC_ALL", tt.all)
		t.Setenv("LC_CTYPE", tt.ctype)
		t.Setenv("LANG", tt.lang)
		if got := unicodeTerminal(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
