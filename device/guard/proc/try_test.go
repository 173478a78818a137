package proc

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestTryThroughTheConnection: Try returns the refusal of a move, and nothing moves.
func TestTryThroughTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Try(t.Context(), "anna", relayName, device.Bool(true), time.Minute); err != nil || r.box.isOn() {
			t.Errorf("%v, and it is on: %v", err, r.box.isOn())
		}
		wantFault(t, r.Try(t.Context(), "anna", relayName, device.Bool(true), time.Hour), device.Invalid, "at most 10m")
		r.on(t, time.Minute)
		wantFault(t, r.Try(t.Context(), "bert", relayName, device.Bool(true), time.Minute), device.Busy, "is held by")
		synctest.Wait()
		r.markDisconnected("for a test")
		wantFault(t, r.Try(t.Context(), "anna", relayName, device.Bool(true), time.Minute), device.Unavailable, "is being started")
	})
}
