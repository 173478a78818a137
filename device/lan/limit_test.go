package lan

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBucket: as much as the rate, and at once no more than the burst.
func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Bucket{PerSecond: 10}
		if !b.Take(10) || b.Take(1) {
			t.Error("at once it allows another number than 10")
		}
		b = Bucket{PerSecond: 10, Burst: 30}
		if !b.Take(30) || b.Take(1) {
			t.Error("at once it allows another number than the burst")
		}
		time.Sleep(time.Second)
		if b.Take(-5); !b.Take(14) || b.Take(1) {
			t.Error("after a second it allows another number than 10 and what was given, less the one too many")
		}
		time.Sleep(time.Hour)
		if !b.Take(30) || b.Take(1) {
			t.Error("a long pause allows more than the burst")
		}
	})
}

// TestLongBackoff: a device that is away for days is asked for each minute.
func TestLongBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Backoff
		for range 200 {
			b.Tried()
		}
		if due := b.Due(false); due < lastTry || due > lastTry+lastTry/8 {
			t.Errorf("it is due in %v", due)
		}
		if due := b.Due(true); due != firstTry {
			t.Errorf("in a hurry it is due in %v", due)
		}
	})
}

// TestHosts: a name that is asked in packets has the letters of names only.
func TestHosts(t *testing.T) {
	for name, want := range map[string]bool{"kitchen.local.": true, "a_b-1.local.": true, "a b.local.": false, "ü.local.": false, ".local.": false} {
		if isHost(name) != want {
			t.Errorf("%q is a host: %v", name, !want)
		}
	}
}
