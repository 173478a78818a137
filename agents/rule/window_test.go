package rule

import (
	"math"
	"testing"
	"time"

	"agentsite/agents/rule/expr"
)

// TestMeanOutOfRange: a mean of numbers whose sum is out of range is no number until they have left
// the window, and never one of what is left of them.
func TestMeanOutOfRange(t *testing.T) {
	w := newWindow(expr.Window{Func: expr.Mean, Length: time.Hour})
	w.hold(0, 0, 20, true)
	at := 2 * time.Hour
	for i, v := range []float64{math.MaxFloat64, -math.MaxFloat64, 20} {
		at := at + time.Duration(i)*time.Second
		w.hold(at, at, v, true)
	}
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{3 * time.Second, false}, {10 * time.Minute, false}, {2 * time.Hour, true}} {
		v, known := w.value(at + tt.after)
		if finite := !math.IsNaN(v) && !math.IsInf(v, 0); !known || finite != tt.want || finite && v != 20 {
			t.Errorf("after %v it is %v, known %v", tt.after, v, known)
		}
	}
}
