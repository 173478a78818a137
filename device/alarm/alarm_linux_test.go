package alarm

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestAlarm: a wait never ends early, may be over at once, and ends with its context.
func TestAlarm(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wait := New(ctx)
	if wait == nil {
		t.Fatal("no timer")
	}
	var all sync.WaitGroup
	for _, d := range []time.Duration{50 * time.Millisecond, 0, -time.Hour, time.Nanosecond, 5 * time.Millisecond, 50 * time.Millisecond} {
		all.Go(func() {
			for range 3 {
				begun := time.Now()
				wait(t.Context(), d)
				if waited := time.Since(begun); waited < d {
					t.Errorf("%v instead of %v", waited, d)
				}
			}
		})
	}
	all.Wait()
	one, stop := context.WithCancel(t.Context())
	all.Go(func() { wait(one, time.Hour) })
	stop()
	all.Wait()
	cancel()
	ended, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	wait(ended, 0) // the alarm has ended
	if ended.Err() == nil {
		t.Error("a wait has ended without a timer")
	}
}
