package guard

import (
	"testing"
	"time"

	"agentsite/device"
)

// TestRefusedUntil: a move that is refused for a known time is refused until then, and allowed then, if no
// lease is renewed.
func TestRefusedUntil(t *testing.T) {
	const start = 2 * time.Hour // after which nothing of the time before the start counts
	for name, tt := range map[string]struct {
		bend   func(own, other *Policy)
		before func(t *testing.T, m *Machine) Time // what happens from start on, and how long it takes
		want   time.Duration
	}{
		"a lease of somebody else": {nil, func(t *testing.T, m *Machine) Time {
			mustMove(t, m, start, "bob", heater, on, time.Minute)
			return 20 * time.Second
		}, 40 * time.Second},
		"an interlock with a held output": {func(own, other *Policy) {
			own.Interlock = Interlock{Group: "water", Gap: 5 * time.Second}
			other.Interlock = own.Interlock
		}, func(t *testing.T, m *Machine) Time {
			mustMove(t, m, start, "bob", pump, on, time.Minute)
			return 20 * time.Second
		}, 45 * time.Second},
		"the gap of an interlock": {func(own, other *Policy) {
			own.Interlock = Interlock{Group: "water", Gap: 5 * time.Second}
			other.Interlock = own.Interlock
		}, func(t *testing.T, m *Machine) Time {
			mustMove(t, m, start, "bob", pump, on, time.Minute)
			settle(m, start)
			_ = m.Release(pump)
			settle(m, start+time.Second)
			return 2 * time.Second
		}, 4 * time.Second},
		"a duty": {func(own, _ *Policy) { own.Duty = Duty{Away: time.Minute, Window: time.Hour} }, func(t *testing.T, m *Machine) Time {
			mustMove(t, m, start, "ann", heater, on, time.Minute)
			settle(m, start)
			m.Tick(start + time.Minute)
			settle(m, start+time.Minute)
			return 30 * time.Minute
		}, 31 * time.Minute},
		"a rest": {nil, func(t *testing.T, m *Machine) Time {
			mustMove(t, m, start, "ann", heater, on, DefaultMaxOn)
			settle(m, start)
			m.Tick(start + DefaultMaxOn)
			settle(m, start+DefaultMaxOn)
			return DefaultMaxOn + 3*time.Second
		}, DefaultRest - 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := policies()[0], switchOf(pump)
			if tt.bend != nil {
				tt.bend(&own, &other)
			}
			m := NewMachine([]Policy{own, other}, false)
			settle(m, 0)
			now := start + tt.before(t, m)
			settle(m, now)
			try := func(at Time) error {
				m.Tick(at)
				settle(m, at)
				return m.Try(at, "ann", heater, on, 0)
			}
			after := device.AsFault(try(now)).After
			if after != tt.want {
				t.Fatalf("refused for %v, want %v: %v", after, tt.want, try(now))
			}
			// Each output arrives at safe before the last moment, so that a gap has begun by then.
			for at := now; at < now+after; at += time.Second {
				if try(at) == nil {
					t.Errorf("it was allowed %v before", now+after-at)
				}
			}
			if err := try(now + after); err != nil {
				t.Error(err)
			}
		})
	}
}
