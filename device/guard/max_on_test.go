package guard

import (
	"errors"
	"testing"
	"time"

	"agentsite/device"
)

// away drives an output as hard as it can and returns how long it was wanted
// away from safe without a break.
func away(t *testing.T, step, confirm time.Duration, act func(m *Machine, now Time, n int)) time.Duration {
	t.Helper()
	m, start := rested()
	now := start
	for n := 0; ; n++ {
		if n > 100000 {
			t.Fatal("it never came back")
		}
		act(m, now, n)
		if v, _ := m.Pending(1); v == device.Number(0) {
			if n == 0 {
				t.Fatal("it never left")
			}
			if m.outputs[1].holder != "" {
				t.Error("somebody holds it at safe")
			}
			return now - start
		}
		if n == 0 || confirm == 0 {
			settle(m, now)
		}
		end := now + step
		for at, ok := m.Next(); ok && at < end; at, ok = m.Next() {
			now = at
			m.Tick(now)
			if v, _ := m.Pending(1); v == device.Number(0) {
				return now - start
			}
		}
		now = end
		m.Tick(now)
	}
}

func TestMaxOnIsContinuous(t *testing.T) {
	level := func(n float64) device.Value { return device.Number(n) }
	tests := []struct {
		name string
		act  func(m *Machine, now Time, n int)
	}{
		{"renewals", func(m *Machine, now Time, _ int) { _ = m.Move(now, "ann", vent, level(50), 30*time.Second) }},
		{"changing values", func(m *Machine, now Time, n int) {
			_ = m.Move(now, "ann", vent, level(float64(1+n%90)), 30*time.Second)
		}},
		{"alternating holders who release", func(m *Machine, now Time, n int) {
			holder := []string{"ann", "bob"}[n%2]
			if m.outputs[1].holder != "" {
				_ = m.Release(vent) // and before the hardware can follow:
			}
			_ = m.Move(now, holder, vent, level(50), 30*time.Second)
		}},
		{"releases that the hardware follows at once", func(m *Machine, now Time, n int) {
			_ = m.Release(vent)
			settle(m, now)
			_ = m.Move(now, "ann", vent, level(float64(1+n%90)), 30*time.Second)
		}},
		{"alternating through the safe value", func(m *Machine, now Time, n int) {
			_ = m.Move(now, "bob", vent, level(0), 0)
			_ = m.Move(now, "ann", vent, level(float64(1+n%90)), 30*time.Second)
		}},
	}
	for _, tt := range tests {
		for _, step := range []time.Duration{time.Second, 7 * time.Second, 29 * time.Second} {
			t.Run(tt.name+" each "+step.String(), func(t *testing.T) {
				if got := away(t, step, 0, tt.act); got != 2*time.Minute {
					t.Errorf("was away from safe for %v, max_on is 2m", got)
				}
			})
		}
	}
}

// The clock runs on until the hardware is known to be safe, and is not wound
// back by a release that the hardware has not followed yet.
func TestMaxOnUntilConfirmed(t *testing.T) {
	m, start := rested()
	mustMove(t, m, start, "ann", heater, on, 0)
	settle(m, start)
	_ = m.Release(heater) // the write is in flight for a long time
	m.Driving(0)
	now := start + 9*time.Minute
	mustMove(t, m, now, "bob", heater, on, 5*time.Minute)
	if got := m.Status(now, 0).Left; got != time.Minute {
		t.Errorf("%v is left; max_on leaves 1m", got)
	}
	_ = m.Release(heater)

	// Past max_on there is no lease at all, and a rest once it is back.
	now = start + 11*time.Minute
	wantFault(t, m.Move(now, "bob", heater, on, 0), device.Unsafe, "on its way")
	want(t, m, 0, off)
	m.Applied(now, 0, off, nil)
	wantFault(t, m.Move(now, "bob", heater, on, 0), device.Unsafe, "rests", "10s")
	mustMove(t, m, now+DefaultRest, "bob", heater, on, 0)

	// After the rest the clock starts anew.
	if got := m.Status(now+DefaultRest, 0).Left; got != time.Minute {
		t.Errorf("left %v", got)
	}
}

// A write that is still in flight when it is undone counts as having left.
func TestMaxOnWhenUndoneInFlight(t *testing.T) {
	m, start := rested()
	mustMove(t, m, start, "ann", heater, on, 0)
	m.Driving(0)
	_ = m.Release(heater)
	m.Applied(start+time.Second, 0, on, nil)
	now := start + 9*time.Minute
	mustMove(t, m, now, "bob", heater, on, 5*time.Minute)
	if got := m.Status(now, 0).Left; got != time.Minute {
		t.Errorf("%v is left; max_on leaves 1m", got)
	}
}

func TestRestAfterMaxOn(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, DefaultMaxOn)
	settle(m, now)
	now += DefaultMaxOn
	m.Tick(now)
	now += 2 * time.Second // the hardware takes its time; the rest begins after it
	settle(m, now)
	if got := m.Status(now, 0).Rest; got != DefaultRest {
		t.Errorf("rest %v", got)
	}
	wantFault(t, m.Move(now+DefaultRest-1, "ann", heater, on, 0), device.Unsafe, "rests", "1s")
	mustMove(t, m, now+DefaultRest, "ann", heater, on, 0)
}

// TestMaxOnOverShortReturns: a return to safe that is shorter than min_off restores nothing of
// max_on, whoever ended the lease and moves next. A return of min_off restores all.
func TestMaxOnOverShortReturns(t *testing.T) {
	for name, end := range map[string]func(m *Machine, now Time){
		"expiry":       func(m *Machine, now Time) { m.Tick(now) },
		"release":      func(m *Machine, _ Time) { _ = m.Release(heater) },
		"move to safe": func(m *Machine, now Time) { _ = m.Move(now, "ann", heater, off, 0) },
		"stop":         func(m *Machine, _ Time) { m.Stop(); m.Reset() },
		"failed write": func(m *Machine, now Time) { m.Driving(0); m.Applied(now, 0, on, errors.New("loose")) },
	} {
		t.Run(name, func(t *testing.T) {
			m, now := rested()
			pause := DefaultRest - 1
			for trip := range 10 { // of a minute each: all of max_on
				holder := []string{"ann", "bob"}[trip%2]
				mustMove(t, m, now, holder, heater, on, time.Minute)
				if got := m.Status(now, 0).Left; got != time.Minute {
					t.Fatalf("trip %d: left %v", trip, got)
				}
				settle(m, now)
				now += time.Minute
				end(m, now)
				settle(m, now)
				want(t, m, 0, off)
				if trip < 9 {
					now += pause // the time at safe does not count
				}
			}
			wantFault(t, m.Move(now+pause, "bob", heater, on, 0), device.Unsafe, "rests", "1s")
			if got := m.Status(now, 0).Rest; got != DefaultRest {
				t.Errorf("rest %v", got)
			}
			now += DefaultRest
			mustMove(t, m, now, "bob", heater, on, DefaultMaxOn)
			if got := m.Status(now, 0).Left; got != DefaultMaxOn {
				t.Errorf("left %v after a rest", got)
			}
		})
	}
}

// TestLeftOfMaxOn: the rest of max_on bounds the next lease, and min_off at safe restores it.
func TestLeftOfMaxOn(t *testing.T) {
	for _, tt := range []struct {
		minOff, pause, want time.Duration
	}{
		{DefaultRest, 0, 9 * time.Minute},
		{DefaultRest, DefaultRest - 1, 9 * time.Minute},
		{DefaultRest, DefaultRest, DefaultMaxOn},
		{0, 0, DefaultMaxOn}, // the owner wants no rest
	} {
		p := policies()[0]
		p.Rest = tt.minOff
		m, now := rested(p)
		mustMove(t, m, now, "ann", heater, on, time.Minute)
		settle(m, now)
		now += time.Minute
		m.Tick(now)
		settle(m, now)
		now += tt.pause
		mustMove(t, m, now, "bob", heater, on, DefaultMaxOn)
		if got := m.Status(now, 0).Left; got != tt.want {
			t.Errorf("min_off %v, after %v at safe: left %v, want %v", tt.minOff, tt.pause, got, tt.want)
		}
	}
}

// A move that is undone before it is written takes nothing and gives nothing back,
// however often.
func TestUndoneMovesGiveNothingBack(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 9*time.Minute)
	settle(m, now)
	now += 9 * time.Minute
	m.Tick(now)
	settle(m, now)
	for range 9 {
		mustMove(t, m, now, "ann", heater, on, 0)
		now += time.Second
		_ = m.Release(heater)
	}
	mustMove(t, m, now, "ann", heater, on, 9*time.Minute)
	if got := m.Status(now, 0).Left; got != time.Minute {
		t.Errorf("left %v, want 1m", got)
	}
	_ = m.Release(heater)
	now += time.Second // the hardware was at safe all the time
	mustMove(t, m, now, "ann", heater, on, 9*time.Minute)
	if got := m.Status(now, 0).Left; got != 9*time.Minute {
		t.Errorf("left %v after ten seconds at safe", got)
	}
}

// Safe that is confirmed while the output is wanted elsewhere again is a return of
// no length, also where that wish is then withdrawn.
func TestMaxOnOverAReturnInFlight(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 9*time.Minute)
	settle(m, now)
	now += 9 * time.Minute
	_ = m.Release(heater)
	m.Driving(0)
	mustMove(t, m, now, "bob", heater, on, 0)
	m.Applied(now, 0, off, nil)
	want(t, m, 0, on)
	_ = m.Release(heater) // before anything was written
	mustMove(t, m, now, "bob", heater, on, 9*time.Minute)
	if got := m.Status(now, 0).Left; got != time.Minute {
		t.Errorf("left %v, want 1m", got)
	}

	// Where it is not withdrawn, the time away goes on.
	settle(m, now)
	_ = m.Release(heater)
	m.Driving(0)
	mustMove(t, m, now, "bob", heater, on, 0)
	m.Applied(now, 0, off, nil)
	settle(m, now)
	now += 30 * time.Second
	_ = m.Release(heater)
	settle(m, now)
	mustMove(t, m, now, "bob", heater, on, 9*time.Minute)
	if got := m.Status(now, 0).Left; got != 30*time.Second {
		t.Errorf("left %v, want 30s", got)
	}

	// Where max_on was spent by then, it rests.
	settle(m, now)
	_ = m.Release(heater)
	m.Driving(0)
	mustMove(t, m, now+29*time.Second, "bob", heater, on, 0)
	now += time.Minute
	m.Applied(now, 0, off, nil)
	m.Tick(now)
	wantFault(t, m.Move(now, "bob", heater, on, 0), device.Unsafe, "rests", "10s")
}

func TestRestAfterStart(t *testing.T) {
	m := NewMachine(policies(), false)
	for i, p := range policies() {
		if v, pending := m.Pending(i); !pending || v != p.Safe {
			t.Errorf("%s: pending %v %v; a new machine drives all to safe", p.Output, v, pending)
		}
		if s := m.Status(0, i); s.Safe || !s.Value.IsZero() {
			t.Errorf("%s claims to be known: %+v", p.Output, s)
		}
	}
	wantFault(t, m.Move(time.Hour, "ann", heater, on, 0), device.Unsafe, "on its way")
	settle(m, time.Hour)
	wantFault(t, m.Move(time.Hour, "ann", heater, on, 0), device.Unsafe, "rests", "10s")
	mustMove(t, m, time.Hour+DefaultRest, "ann", heater, on, 0)
	// Unlimited has no start to spend but rests after it all the same.
	wantFault(t, m.Move(time.Hour, "ann", valve, off, 0), device.Unsafe, "rests", "10s")
	mustMove(t, m, time.Hour+DefaultRest, "ann", valve, off, 0)
}
