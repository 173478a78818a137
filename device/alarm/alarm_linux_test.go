package alarm_test

import (
	"context"
	"testing"

	"agentsite/device/alarm"

	"go.uber.org/goleak"
)

// TestEnd: after the end no timer is due, and a timer may be made, reset and stopped.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	after := alarm.New(ctx)
	cancel()
	goleak.VerifyNone(t) // its goroutine has ended
	timer := after(0, func() { t.Error("due after the end") })
	timer.Reset(0)
	if !timer.Stop() || timer.Stop() {
		t.Error("Stop reports something else than that the timer waited once")
	}
}
