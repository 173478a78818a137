package guard

import (
	"testing"
	"time"
)

// TestAllowances: what is left of max_on and of a duty is told apart, and what of the duty is only
// assumed. The smaller one is how long a move holds.
func TestAllowances(t *testing.T) {
	p := policies()[0]
	p.Duty = Duty{Away: time.Minute, Window: time.Hour}
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	at := func(now Time, maxOn, duty, assumed time.Duration) {
		t.Helper()
		m.Tick(now)
		settle(m, now)
		s := m.Status(now, 0)
		if s.MaxOn != maxOn || s.Duty != duty || s.Assumed != assumed || s.Spare != min(maxOn, duty) {
			t.Errorf("at %v: max_on %v, duty %v of which %v is assumed, spare %v", now, s.MaxOn, s.Duty, s.Assumed, s.Spare)
		}
	}
	at(0, 0, 0, time.Minute)
	at(30*time.Minute, p.MaxOn, 29*time.Second, 31*time.Second)
	now := 2 * time.Hour
	at(now, p.MaxOn, time.Minute, 0)
	mustMove(t, m, now, "ann", heater, on, 40*time.Second)
	at(now+10*time.Second, p.MaxOn-10*time.Second, 50*time.Second, 0)
	at(now+40*time.Second, p.MaxOn-40*time.Second, 20*time.Second, 0)
	at(now+40*time.Second+p.Rest, p.MaxOn, 20*time.Second, 0)
	at(now+2*time.Hour, p.MaxOn, time.Minute, 0)
}
