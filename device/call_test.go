package device

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCall(t *testing.T) {
	loose := errors.New("loose")
	for _, tt := range []struct {
		name  string
		call  func(context.Context) (int, error)
		after time.Duration
		says  string
	}{
		{"at once", func(context.Context) (int, error) { return 1, nil }, 0, ""},
		{"a failure", func(context.Context) (int, error) { return 0, loose }, 0, "loose"},
		{"a panic", func(context.Context) (int, error) { panic("nil map") }, 0, "nil map"},
		{"to its context", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, time.Second, "context deadline exceeded"},
		{"a little late", func(context.Context) (int, error) { time.Sleep(1400 * time.Millisecond); return 1, nil }, 1400 * time.Millisecond, ""},
		{"deaf", func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil }, 1500 * time.Millisecond, "does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				answer, back, err := Call(ctx, tt.call)
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				switch {
				case tt.says == "" && (err != nil || answer != 1 || back != nil):
					t.Errorf("%d %v %v", answer, back, err)
				case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
					t.Errorf("%v, want %s", err, tt.says)
				}
				if (back != nil) != (tt.name == "deaf") {
					t.Fatalf("back: %v", back)
				}
				if back != nil {
					<-back
					if took := time.Since(start); took != time.Minute {
						t.Errorf("back after %v", took)
					}
				}
			})
		})
	}
}
