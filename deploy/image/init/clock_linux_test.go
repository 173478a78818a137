package main

import (
	"errors"
	"math"
	"testing"
	"time"
)

// TestAgreed: no single server sets the clock, however wrong its time is.
func TestAgreed(t *testing.T) {
	const far, s = math.MaxInt64, time.Second
	for _, tt := range []struct {
		offs []time.Duration
		want time.Duration
		ok   bool
	}{
		{nil, 0, false},
		{[]time.Duration{5 * s}, 0, false},
		{[]time.Duration{5 * s, 7 * s}, 0, false},
		{[]time.Duration{5 * s, 6 * s}, 5*s + s/2, true},
		{[]time.Duration{far, 6 * s, 5 * s}, 5*s + s/2, true},
		{[]time.Duration{-far, far, 6 * s, 6 * s}, 6 * s, true},
		{[]time.Duration{-far, far}, 0, false},
		{[]time.Duration{far, 0, -far, 2 * s}, 0, false},
		{[]time.Duration{100 * s, 5 * s, 101 * s, 5*s + s/10}, 5*s + s/20, true},
	} {
		if got, err := agreed(tt.offs); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%v: %v %v", tt.offs, got, err)
		}
	}
	says := map[string]time.Duration{"a": s, "b": s, "liar": far}
	all := queryAll([]string{"a", "liar", "silent", "b"}, func(server string) (time.Duration, error) {
		off, ok := says[server]
		if !ok {
			return 0, errors.New("it does not answer")
		}
		return off, nil
	})
	if got, err := agreed(all); len(all) != 3 || got != s || err != nil {
		t.Error(all, got, err)
	}
}
