package events

import (
	"testing"
	"time"
)

// TestPause: who polls is asked to wait longer, the longer nothing has happened.
func TestPause(t *testing.T) {
	var st state
	for _, want := range []time.Duration{5, 10, 15, 20, 25, 30, 35, 40, 40} {
		if got := st.pause(5*time.Second, 0); got != want*time.Second {
			t.Errorf("%v instead of %v s", got, want)
		}
	}
	if got := st.pause(5*time.Second, 1); got != 5*time.Second {
		t.Errorf("%v after an event", got)
	}
	if got := st.pause(time.Minute, 0); got != time.Minute {
		t.Errorf("%v for a point that is read each minute", got)
	}
}
