package llm

import "testing"

// TestEnterBackAndForth: a clock that is set back and forth over the end of a period counts each use
// once.
func TestEnterBackAndForth(t *testing.T) {
	at, used, others := 9, int64(3), []spent(nil)
	to := func(now int) { used = enter(now, &at, used, &others) }
	to(10)
	used += 5
	for range 4 {
		if to(9); used != 8 {
			t.Errorf("in the earlier period %d, want 8", used)
		}
		if to(10); used != 5 {
			t.Errorf("in the later period %d, want 5", used)
		}
	}
	to(9)
	used += 2
	to(10)
	if to(9); used != 10 {
		t.Errorf("in the earlier period %d, want 10", used)
	}
	if to(11); used != 0 {
		t.Errorf("in the next period %d", used)
	}
}

// TestEnterThroughUnused: a period in which nothing was used is no reason to count another twice.
func TestEnterThroughUnused(t *testing.T) {
	at, used, others := 20, int64(5), []spent(nil)
	for range 3 {
		for _, now := range []int{10, 9, 10, 11} {
			if used = enter(now, &at, used, &others); used > 5 {
				t.Errorf("%d in period %d, want 5 at most: %v", used, now, others)
			}
		}
	}
}
