package agent

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	const most = maxSeconds * time.Second
	for n, want := range map[float64]time.Duration{
		0: 0, 0.5: 500 * time.Millisecond, 60: time.Minute, -1: 0, 1e10: most, 1e300: most,
		math.Inf(1): most, math.Inf(-1): 0,
	} {
		if got := Seconds(n); got != want {
			t.Errorf("%v: %v, want %v", n, got, want)
		}
	}
	if got := Seconds(math.NaN()); got != 0 {
		t.Errorf("NaN: %v", got)
	}
}
