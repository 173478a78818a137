package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// pastOf returns a history of steps of a minute from a time on, with these means.
func pastOf(name, unit string, from time.Time, means ...float64) past {
	p := past{History: agents.History{Point: name, Unit: unit, Length: 60, Min: &means[0], Mean: &means[0], Max: &means[len(means)-1]}}
	for i, v := range means {
		p.Steps = append(p.Steps, agents.Step{Min: v, Mean: v, Max: v})
		p.times = append(p.times, from.Add(time.Duration(i)*time.Minute))
	}
	return p
}

// changesOf returns a history of changes, the last one now.
func changesOf(now time.Time, name string, values ...device.Value) past {
	p := past{History: agents.History{Point: name}}
	for i, v := range values {
		p.Changes = append(p.Changes, agents.Event{Value: v})
		p.times = append(p.times, now.Add(time.Duration(i-len(values)+1)*time.Hour))
	}
	return p
}

func TestSpans(t *testing.T) {
	now := time.Now()
	p := changesOf(now, "a/heater", device.Bool(false), device.Bool(true), device.Value{}, device.Bool(true), device.Bool(false))
	s := p.series(now.Add(-12*time.Hour), now)
	if len(s.Spans) != 4 || !s.Spans[0].Off || s.Spans[1].Off || s.Spans[1].To != p.times[2] || !slices.Equal(s.Summary, []string{"on for 2 h", "2 times"}) {
		t.Errorf("%+v", s)
	}
	p = changesOf(now, "a/button", device.Bool(true), device.Bool(true))
	p.event = true
	if s = p.series(now.Add(-12*time.Hour), now); len(s.Spans) != 2 || s.Spans[0].From != s.Spans[0].To || !slices.Equal(s.Summary, []string{"2 times"}) {
		t.Errorf("%+v", s)
	}
	p = changesOf(now, "a/level", device.Number(0), device.Number(40))
	if s = p.series(now.Add(-2*time.Hour), now.Add(time.Hour)); len(s.Steps) != 160 || s.Steps[0].Mean != 0 || s.Steps[159].Mean != 40 || !slices.Equal(s.Summary, []string{"last 40"}) {
		t.Errorf("%d %v", len(s.Steps), s.Summary)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1w2d3h": 219 * time.Hour, "2w": 14 * 24 * time.Hour, "1d30s": 24*time.Hour + 30*time.Second} {
		if got, err := parseDuration(text); got != want || err != nil {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "1d1w", "1d-", "9999999999w", "1x", "5"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%s is %v", text, got)
		}
	}
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
		changesOf(time.Now(), "a/level", device.Number(1e308), device.Value{}, device.Number(-1e308)),
		changesOf(time.Now(), "a/state", device.Text("\x1b[2J"), device.Bool(true), device.Text(strings.Repeat("x", 200)), device.Bool(false)),
	}
	all[4].times[2] = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	all[0].Length, all[1].Length = 1e300, -1
	from, to := h.timeRange(all)
	if err := h.draw(all, from, to); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, steers) || len([]rune(line)) > 60 {
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
		from, to := (&history{hours: 2}).timeRange(tt.all)
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
		if s := pastOf("a/t", tt.unit, time.Now(), 0, tt.max).series(time.Time{}, time.Time{}); s.Unit != tt.want || s.Steps[1].Max != tt.top {
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
