package guard

import (
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

// TestJustStarted: a limit that counts the time before the start as used says so, and never that the
// output was on. What is left of it is told before a move.
func TestJustStarted(t *testing.T) {
	p := policies()[0]
	p.Duty = Duty{Away: time.Minute, Window: time.Hour}
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	err := m.Move(11*time.Second, "ann", heater, on, 0)
	if wantFault(t, err, device.Unsafe, "just started"); strings.Contains(err.Error(), "has been away") {
		t.Error(err)
	}
	now := 3 * time.Minute
	spare := m.Status(now, 0).Spare
	mustMove(t, m, now, "ann", heater, on, 90*time.Second)
	if got := m.Status(now, 0).Left; got != spare || spare >= time.Minute || spare <= 0 {
		t.Errorf("it is on for %v, and %v was told", got, spare)
	}
}
