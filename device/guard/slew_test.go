package guard

import (
	"math"
	"testing"
	"time"

	"agentsite/device"
)

// slewed is a vent whose values come at 45 in a second, at safe and rested.
func slewed(ramp bool) (*Machine, Time) {
	p := policies()[1]
	p.Slew = Slew{45, ramp}
	return rested(p)
}

// runs lets the hardware follow and the machine tick for a time, each write taking
// some of it, and returns the steepest that the hardware saw.
func runs(m *Machine, now *Time, d, writing time.Duration) (steepest float64, wakeUps int) {
	type point struct {
		at Time
		v  float64
	}
	var seen []point
	for end := *now + d; ; {
		if v, pending := m.Pending(0); pending {
			m.Driving(0)
			*now += writing
			m.Applied(*now, 0, v, nil)
			for _, p := range seen[max(0, len(seen)-20):] { // over a fifth of a second and more
				if *now-p.at >= 200*time.Millisecond {
					steepest = max(steepest, math.Abs(v.Number()-p.v)/(*now-p.at).Seconds())
				}
			}
			seen = append(seen, point{*now, v.Number()})
		}
		at, ok := m.Next()
		if !ok || at > end {
			*now = max(*now, end)
			return steepest, wakeUps
		}
		*now = max(*now, at)
		m.Tick(*now)
		wakeUps++
	}
}

func TestSlew(t *testing.T) {
	for _, writing := range []time.Duration{0, 5 * time.Millisecond, 150 * time.Millisecond} {
		m, now := slewed(false)
		mustMove(t, m, now, "ann", vent, device.Number(90), 30*time.Second)
		start := now
		steepest, wakeUps := runs(m, &now, 2*time.Second, writing)
		if s := m.Status(now, 0); writing < 20*time.Millisecond && s.Value != device.Number(90) {
			t.Errorf("after %v it is at %v", now-start, s.Value)
		}
		if steepest > 45*1.1 || wakeUps > 101 {
			t.Errorf("%v in a second, %d wake-ups", steepest, wakeUps)
		}

		// Another value is a ramp from where it is, and safe is at once.
		mustMove(t, m, now, "ann", vent, device.Number(45), 30*time.Second)
		if s := m.Status(now, 0); s.Goal != device.Number(45) || s.Safe {
			t.Errorf("%+v", s)
		}
		runs(m, &now, 100*time.Millisecond, writing)
		_ = m.Release(vent)
		want(t, m, 0, device.Number(0))
	}
}

// TestSlewOverManyCalls: asking again does not make it faster.
func TestSlewOverManyCalls(t *testing.T) {
	m, now := slewed(false)
	for n := range 1000 {
		mustMove(t, m, now, "ann", vent, device.Number(float64(80+n%2)), 30*time.Second)
		settle(m, now)
		m.Tick(now)
		settle(m, now)
		now += time.Millisecond
	}
	if got := m.Status(now, 0).Value.Number(); got > 45+1 || got < 40 {
		t.Errorf("after a second it is at %v", got)
	}
}

// TestRampToSafe: where a ramp is the safe way, everything takes it but hardware of which
// nobody knows where it is; and it ends within max_on.
func TestRampToSafe(t *testing.T) {
	for name, end := range map[string]func(m *Machine, now Time){
		"release": func(m *Machine, _ Time) { _ = m.Release(vent) },
		"stop":    func(m *Machine, _ Time) { m.Stop() },
		"park":    func(m *Machine, _ Time) { m.Park() },
	} {
		t.Run(name, func(t *testing.T) {
			m, now := slewed(true)
			mustMove(t, m, now, "ann", vent, device.Number(90), 30*time.Second)
			runs(m, &now, 3*time.Second, 0)
			end(m, now)
			want(t, m, 0, device.Number(90))
			if s := m.Status(now, 0); s.Goal != device.Number(0) || s.Safe || s.Holder != "" {
				t.Errorf("%+v", s)
			}
			start := now
			steepest, _ := runs(m, &now, time.Second, 0)
			if s := m.Status(now, 0); s.Safe || steepest > 45*1.1 || s.Value.Number() > 46 || s.Value.Number() < 40 {
				t.Errorf("after %v: %+v, %v in a second", now-start, s, steepest)
			}
			m.Driving(0)
			m.Applied(now, 0, device.Number(40), errLoose)
			want(t, m, 0, device.Number(0))
		})
	}
	m, start := slewed(true)
	now := start
	for now < start+2*time.Minute-time.Millisecond {
		_ = m.Move(now, "ann", vent, device.Number(90), 30*time.Second)
		runs(m, &now, time.Second, 0)
	}
	if s := m.Status(now, 0); !s.Safe {
		t.Errorf("after its max_on: %+v", s)
	}
}

// TestSlowSlew wakes up as seldom as its range has steps.
func TestSlowSlew(t *testing.T) {
	p := policies()[1]
	p.Slew, p.MaxOn, p.Lease = Slew{PerSecond: 0.01}, Unlimited, 0
	m, now := rested(p)
	mustMove(t, m, now, "ann", vent, device.Number(90), 3*time.Hour)
	if _, wakeUps := runs(m, &now, 150*time.Minute, 0); wakeUps > 100 {
		t.Errorf("%d wake-ups", wakeUps)
	}
	if s := m.Status(now, 0); s.Value != device.Number(90) {
		t.Errorf("%+v", s)
	}
}

// TestSlewOfLargeNumbers: steps that nine digits do not show are steps all the same.
func TestSlewOfLargeNumbers(t *testing.T) {
	p := policies()[1]
	p.Range, p.Safe, p.Slew = device.Range{Min: 1e9, Max: 1e9 + 1}, device.Number(1e9), Slew{PerSecond: 0.5}
	m, now := rested(p)
	mustMove(t, m, now, "ann", vent, device.Number(1e9+1), 30*time.Second)
	runs(m, &now, time.Second, 0)
	if got := m.Status(now, 0).Value.Number() - 1e9; got < 0.45 || got > 0.55 {
		t.Errorf("after a second it has gone %v", got)
	}
}
