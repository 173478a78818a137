package device

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s",
		time.Hour + time.Second: "1h0m1s", 500 * time.Millisecond: "500ms", -time.Minute: "-1m", 100 * time.Hour: "100h",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if back, err := time.ParseDuration(FormatDuration(d)); err != nil || back != d {
			t.Errorf("%s is read as %v, %v", FormatDuration(d), back, err)
		}
	}
}

func TestFaultf(t *testing.T) {
	args := []any{time.Minute, "heater", io.EOF}
	f := Faultf(Unsafe, "%v: %s: %w", args...)
	if f.Error() != "1m: heater: EOF" || !errors.Is(f, io.EOF) || args[0] != time.Minute {
		t.Errorf("%v %v", f, args)
	}
}

func TestNearest(t *testing.T) {
	points := []string{"greenhouse/temperature", "greenhouse/heater", "greenhouse/vent", "host/uptime"}
	for word, want := range map[string][]string{
		"greenhouse/temp":        {"greenhouse/temperature"},
		"greenhous/temperature":  {"greenhouse/temperature"},
		"heater":                 {"greenhouse/heater"},
		"greenhouse/heatr":       {"greenhouse/heater"},
		"Greenhouse/Vent":        {"greenhouse/vent"},
		"kitchen/oven/door/left": nil,
		"":                       nil,
	} {
		got := nearest(word, points)
		if len(want) == 0 && len(got) != 0 || len(want) > 0 && (len(got) == 0 || got[0] != want[0]) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Suggest("x", points, "point"); got != "; the points are greenhouse/heater, greenhouse/temperature, greenhouse/vent, host/uptime" {
		t.Error(got)
	}
	if got := nearest("saef", []string{"safe", "rate", "safe"}); !slices.Equal(got, []string{"safe"}) {
		t.Errorf("%q", got)
	}
	if got := Suggest("x", nil, "point"); got != "" {
		t.Error(got)
	}
	if !slices.Equal(points, []string{"greenhouse/temperature", "greenhouse/heater", "greenhouse/vent", "host/uptime"}) {
		t.Error("the list was sorted in place")
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"", 5, ""}, {"short", 5, "short"}, {"longer", 5, "lo…"}, {"größe", 7, "größe"}, {"größe", 6, "gr…"}, {"größer", 7, "grö…"},
		{"a\xffb", 10, "a\ufffdb"}, {"\xff\xff\xff", 8, "\ufffd…"}, {"日本語", 8, "日…"}, {"日本語", 9, "日本語"}, {"abcd", 3, "…"},
	} {
		if got := Clip(c.text, c.max); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, not %q", c.text, c.max, got, c.want)
		}
	}
}

func TestSuggestName(t *testing.T) {
	for name, want := range map[string]string{"Küche 1": "kueche-1", "--help": "help", "/": "", "- data": "data"} {
		if got := SuggestName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
