package expr

import (
	"testing"
	"time"
)

// TestSunKeepsItsDate: a sunset after midnight is not one of this morning, and a sun that is always
// down or up has set or risen for good.
func TestSunKeepsItsDate(t *testing.T) {
	noon := time.Date(2026, 6, 21, 12, 0, 0, 0, zones[0])
	const never = 1000 * 24 * time.Hour
	late, down, up := fixed{noon, noon.Add(-9 * time.Hour), noon.Add(12*time.Hour + 15*time.Minute)}, fixed{noon, noon.Add(never), noon.Add(-never)}, fixed{noon, noon.Add(-never), noon.Add(never)}
	for _, c := range []struct {
		sun  fixed
		hour time.Duration // from noon
		text string
		want Truth
	}{
		{late, 0, "now > sunset", False}, {late, 0, "now < sunset", True}, {late, 0, "now > sunset - 1h", False}, {late, 0, "now between sunset..sunrise", False},
		{late, 12*time.Hour - 1, "now > sunset - 1h", True}, {late, -12 * time.Hour, "now between sunset..sunrise", False},
		{late, -11 * time.Hour, "now between sunset..sunrise", True}, {late, -10 * time.Hour, "now between sunset..sunrise", True},
		{down, 0, "now between sunset..sunrise", True}, {down, 0, "now between sunset + 30m..sunrise - 30m", True}, {down, 0, "now between sunrise..sunset", False},
		{down, 0, "now > sunset", True}, {down, 0, "now > sunrise", False},
		{down, 6 * time.Hour, "now between sunset..22:00", True}, {down, -2 * time.Hour, "now between sunset..22:00", False}, {down, -6 * time.Hour, "now between 4:00..sunrise", True},
		{up, 0, "now between sunset..sunrise", False}, {up, 0, "now between sunrise..sunset", True}, {up, 11 * time.Hour, "now > sunset", False},
		{up, 11 * time.Hour, "now between sunset..2:00", False}, {up, 0, "now between 6:00..sunset", True},
	} {
		c.sun.t = noon.Add(c.hour)
		if got, _ := mustCompile(t, c.text).Eval(&c.sun); got != c.want {
			t.Errorf("at %v, with a sunset at %v, %s is %v", c.sun.t, c.sun.set, c.text, got)
		}
	}
}
