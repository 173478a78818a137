package guard

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

const (
	heater = "room/heater" // a switch with all the defaults
	vent   = "room/vent"   // a level with a lease of its own
	valve  = "room/valve"  // a switch that is safe when on, and never has to come back
)

var (
	on  = device.Bool(true)
	off = device.Bool(false)
)

func policies() []Policy {
	return []Policy{
		{Output: heater, Kind: device.KindSwitch, Safe: off, MaxOn: DefaultMaxOn, Rest: DefaultRest},
		{Output: vent, Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 90}, Safe: device.Number(0),
			Lease: 30 * time.Second, MaxOn: 2 * time.Minute, Rest: 5 * time.Second},
		{Output: valve, Kind: device.KindSwitch, Safe: on, MaxOn: Unlimited, Rest: DefaultRest},
	}
}

// settle is a hardware that follows at once.
func settle(m *Machine, now Time) {
	for i := range m.outputs {
		if v, pending := m.Pending(i); pending {
			m.Driving(i)
			m.Applied(now, i, v, nil)
		}
	}
}

// rested is a machine whose outputs are at safe and may move, and the time then.
func rested(ps ...Policy) (*Machine, Time) {
	if ps == nil {
		ps = policies()
	}
	m := NewMachine(ps, false)
	settle(m, 0)
	return m, DefaultRest
}

func mustMove(t *testing.T, m *Machine, now Time, holder, output string, v device.Value, length time.Duration) {
	t.Helper()
	if err := m.Move(now, holder, output, v, length); err != nil {
		t.Fatalf("at %v, %s moving %s to %v for %v: %v", now, holder, output, v, length, err)
	}
}

func want(t *testing.T, m *Machine, i int, v device.Value) {
	t.Helper()
	if got, _ := m.Pending(i); got != v {
		t.Fatalf("%s is wanted at %v, not at %v", m.outputs[i].Output, got, v)
	}
}

// wantFault checks the kind and that the sentence has all the parts.
func wantFault(t *testing.T, err error, kind device.FaultKind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("nothing was refused; want %s", kind)
	}
	var f *device.Fault
	if !errors.As(err, &f) {
		t.Fatalf("%v is no fault; want %s", err, kind)
	}
	if f.Kind != kind {
		t.Errorf("%q is %s; want %s", f.Msg, f.Kind, kind)
	}
	for _, p := range parts {
		if !strings.Contains(f.Msg, p) {
			t.Errorf("%q does not say %q", f.Msg, p)
		}
	}
	for _, name := range f.Names {
		if !strings.Contains(f.Msg, name) || f.Short == "" || strings.Contains(f.Short, name) {
			t.Errorf("%q names %s, and in short it is %q", f.Msg, name, f.Short)
		}
	}
}

func TestRefusals(t *testing.T) {
	type call struct {
		holder, output string
		v              device.Value
		length         time.Duration
	}
	none := func(*Machine, Time) {}
	tests := []struct {
		name   string
		before func(*Machine, Time)
		after  time.Duration
		call   call
		kind   device.FaultKind
		parts  []string
	}{
		{"above the range", none, 0, call{"ann", vent, device.Number(90.5), 0}, device.Invalid, []string{vent, "0..90", "90.5"}},
		{"below the range", none, 0, call{"ann", vent, device.Number(-1), 0}, device.Invalid, []string{vent, "0..90", "-1"}},
		{"NaN", none, 0, call{"ann", vent, device.Number(math.NaN()), 0}, device.Invalid, []string{vent, "a number", "0..90"}},
		{"+Inf", none, 0, call{"ann", vent, device.Number(math.Inf(1)), 0}, device.Invalid, []string{vent, "a number", "0..90"}},
		{"-Inf", none, 0, call{"ann", vent, device.Number(math.Inf(-1)), 0}, device.Invalid, []string{vent, "a number", "0..90"}},
		{"bool for a level", none, 0, call{"ann", vent, on, 0}, device.Invalid, []string{vent, "a number"}},
		{"text for a level", none, 0, call{"ann", vent, device.Text("45"), 0}, device.Invalid, []string{vent, "a number"}},
		{"nothing for a level", none, 0, call{"ann", vent, device.Value{}, 0}, device.Invalid, []string{vent, "a number"}},
		{"number for a switch", none, 0, call{"ann", heater, device.Number(1), 0}, device.Invalid, []string{heater, "true or false"}},
		{"text for a switch", none, 0, call{"ann", heater, device.Text("on"), 0}, device.Invalid, []string{heater, "true or false"}},
		{"nothing for a switch", none, 0, call{"ann", heater, device.Value{}, 0}, device.Invalid, []string{heater, "true or false"}},
		{"negative", none, 0, call{"ann", heater, on, -1}, device.Invalid, []string{heater, "at most 10m"}},
		{"very negative", none, 0, call{"ann", valve, off, math.MinInt64}, device.Invalid, []string{valve, "at most"}},
		{"longer than max_on", none, 0, call{"ann", heater, on, DefaultMaxOn + 1}, device.Invalid, []string{heater, "at most 10m"}},
		{"longer than lease", none, 0, call{"ann", vent, device.Number(1), 30*time.Second + 1}, device.Invalid, []string{vent, "at most 30s"}},
		{"unknown output", none, 0, call{"ann", "room/ghost", on, 0}, device.Invalid, []string{"no output", `"room/ghost"`}},
		{"a long unknown output is clipped", none, 0, call{"ann", strings.Repeat("x", 5000), on, 0}, device.Invalid, []string{"no output"}},
		{"nobody", none, 0, call{"", heater, on, 0}, device.Denied, []string{"nobody", heater}},
		{"busy", func(m *Machine, now Time) { _ = m.Move(now, "bob", heater, on, 90*time.Second) }, 500 * time.Millisecond,
			call{"ann", heater, on, 0}, device.Busy, []string{heater, "held by bob", "1m30s"}},
		{"busy for ever", func(m *Machine, now Time) { _ = m.Move(now, "bob", valve, off, Unlimited) }, time.Second,
			call{"ann", valve, off, 0}, device.Busy, []string{valve, "held by bob", "256204"}},
		{"stopped", func(m *Machine, _ Time) { m.Stop() }, 0,
			call{"ann", heater, on, 0}, device.Unsafe, []string{"emergency stop", "agentsite reset"}},
		{"parked", func(m *Machine, _ Time) { m.Park() }, 0,
			call{"ann", heater, on, 0}, device.Unavailable, []string{"stopping", "safe"}},
		{"parked and stopped and reset", func(m *Machine, _ Time) { m.Stop(); m.Park(); m.Reset() }, 0,
			call{"ann", heater, on, 0}, device.Unavailable, []string{"stopping", "safe"}},
		{"spent, not back yet", func(m *Machine, now Time) {
			_ = m.Move(now, "ann", heater, on, DefaultMaxOn)
			settle(m, now)
			m.Tick(now + DefaultMaxOn)
		}, DefaultMaxOn, call{"ann", heater, on, 0}, device.Unsafe, []string{heater, "on its way to safe", "10s"}},
		{"resting", func(m *Machine, now Time) {
			_ = m.Move(now, "ann", heater, on, DefaultMaxOn)
			settle(m, now)
			m.Tick(now + DefaultMaxOn)
			settle(m, now+DefaultMaxOn)
		}, DefaultMaxOn + 3500*time.Millisecond, call{"ann", heater, on, 0}, device.Unsafe, []string{heater, "rests", "7s"}},
		{"faulted", func(m *Machine, now Time) {
			_ = m.Move(now, "ann", heater, on, 0)
			m.Driving(0)
			m.Applied(now, 0, on, errors.New("the wire is loose"))
		}, 0, call{"ann", heater, on, 0}, device.Offline, []string{heater, "driven to safe", "the wire is loose"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, now := rested()
			tt.before(m, now)
			before := m.outputs[0]
			err := m.Move(now+tt.after, tt.call.holder, tt.call.output, tt.call.v, tt.call.length)
			wantFault(t, err, tt.kind, tt.parts...)
			if len(err.Error()) > 300 {
				t.Errorf("a sentence of %d bytes", len(err.Error()))
			}
			if m.outputs[0] != before {
				t.Error("a refused move changed something")
			}
		})
	}
	t.Run("release of an unknown output", func(t *testing.T) {
		m, _ := rested()
		wantFault(t, m.Release("room/ghost"), device.Invalid, `"room/ghost"`)
	})
	t.Run("policy of an unknown output", func(t *testing.T) {
		m, _ := rested()
		_, err := m.Policy("room/ghost")
		wantFault(t, err, device.Invalid, `"room/ghost"`)
	})
}

// A time in a sentence stays true where it almost overflows.
func TestBusyForEverFromTheStart(t *testing.T) {
	p := policies()[2]
	p.Rest = 0
	m, _ := rested(p)
	mustMove(t, m, 0, "bob", valve, off, Unlimited)
	err := m.Move(0, "ann", valve, off, 0)
	wantFault(t, err, device.Busy, "held by bob", "2562047h")
	if strings.Contains(err.Error(), "-") {
		t.Errorf("a negative time: %v", err)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name  string
		wrong func(*Policy)
		part  string
	}{
		{"a measurement", func(p *Policy) { p.Kind = device.KindMeasurement }, "not an output"},
		{"no max_on", func(p *Policy) { p.MaxOn = 0 }, "max_on"},
		{"negative max_on", func(p *Policy) { p.MaxOn = -1 }, "max_on"},
		{"negative lease", func(p *Policy) { p.Lease = -1 }, "lease"},
		{"lease beyond max_on", func(p *Policy) { p.Lease = p.MaxOn + 1 }, "longer than max_on"},
		{"negative min_off", func(p *Policy) { p.Rest = -1 }, "min_off"},
		{"no safe value", func(p *Policy) { p.Safe = device.Value{} }, "safe value"},
		{"safe value of another type", func(p *Policy) { p.Safe = off }, "safe value"},
		{"safe value out of range", func(p *Policy) { p.Safe = device.Number(91) }, "safe value"},
		{"safe NaN", func(p *Policy) { p.Safe = device.Number(math.NaN()) }, "safe value"},
		{"range of NaN", func(p *Policy) { p.Range.Max = math.NaN() }, "safe value"},
		{"range turned round", func(p *Policy) { p.Range = device.Range{Min: 90, Max: 0} }, "safe value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policies()[1]
			tt.wrong(&p)
			wantFault(t, p.Validate(), device.Invalid, vent, tt.part)
		})
	}
	for _, p := range policies() {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	p := NewPolicy("room", device.Point{Name: "heater", Kind: device.KindSwitch, Safe: off})
	if p != policies()[0] {
		t.Errorf("an owner who writes nothing gets %+v", p)
	}
}

func TestDefaultLength(t *testing.T) {
	tests := []struct {
		name         string
		lease, maxOn time.Duration
		want         time.Duration
	}{
		{"a minute", 0, DefaultMaxOn, time.Minute},
		{"a minute of a longer lease", 5 * time.Minute, DefaultMaxOn, time.Minute},
		{"a shorter lease", 30 * time.Second, DefaultMaxOn, 30 * time.Second},
		{"a shorter max_on", 0, 20 * time.Second, 20 * time.Second},
		{"unlimited", 0, Unlimited, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policies()[0]
			p.Lease, p.MaxOn = tt.lease, tt.maxOn
			m, now := rested(p)
			mustMove(t, m, now, "ann", heater, on, 0)
			if got := m.Status(now, 0).Left; got != tt.want {
				t.Errorf("left %v, want %v", got, tt.want)
			}
			if at, ok := m.Next(); !ok || at != now+tt.want {
				t.Errorf("next %v %v, want %v", at, ok, now+tt.want)
			}
			m.Tick(now + tt.want - 1)
			want(t, m, 0, on)
			m.Tick(now + tt.want)
			want(t, m, 0, off)
			if _, ok := m.Next(); ok {
				t.Error("something is still due")
			}
		})
	}
}

// A renewal replaces the lease, in both directions.
func TestRenewal(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	mustMove(t, m, now+30*time.Second, "ann", heater, on, 2*time.Minute)
	if got := m.Status(now+30*time.Second, 0).Left; got != 2*time.Minute {
		t.Errorf("left %v", got)
	}
	mustMove(t, m, now+40*time.Second, "ann", heater, on, time.Second)
	if at, _ := m.Next(); at != now+41*time.Second {
		t.Errorf("next %v", at)
	}
	if _, pending := m.Pending(0); pending {
		t.Error("a renewal at the same value asked for a write")
	}
}

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
	wantFault(t, m.Move(now, "bob", heater, on, 0), device.Unsafe, "on its way to safe")
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

// A return to safe that is shorter than min_off gives nothing of max_on back,
// whoever ended the lease and whoever comes next; one of min_off gives it all.
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

// What is left of max_on bounds the next lease, and min_off at safe restores it.
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
	wantFault(t, m.Move(time.Hour, "ann", heater, on, 0), device.Unsafe, "on its way to safe")
	settle(m, time.Hour)
	wantFault(t, m.Move(time.Hour, "ann", heater, on, 0), device.Unsafe, "rests", "10s")
	mustMove(t, m, time.Hour+DefaultRest, "ann", heater, on, 0)
	// Unlimited has no start to spend but rests after it all the same.
	wantFault(t, m.Move(time.Hour, "ann", valve, off, 0), device.Unsafe, "rests", "10s")
	mustMove(t, m, time.Hour+DefaultRest, "ann", valve, off, 0)
}

// A move that was undone before anything was written never left safe.
func TestMoveUndoneBeforeItWasWritten(t *testing.T) {
	for name, undo := range map[string]func(m *Machine, now Time){
		"release":      func(m *Machine, _ Time) { _ = m.Release(heater) },
		"move to safe": func(m *Machine, now Time) { _ = m.Move(now, "bob", heater, off, 0) },
		"stop":         func(m *Machine, _ Time) { m.Stop(); m.Reset() },
		"expiry":       func(m *Machine, now Time) { m.Tick(now + time.Minute) },
		"expiry of max_on": func(m *Machine, now Time) {
			mustMove(t, m, now, "ann", heater, on, DefaultMaxOn)
			m.Tick(now + DefaultMaxOn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := rested()
			mustMove(t, m, now, "ann", heater, on, time.Minute)
			undo(m, now)
			if _, pending := m.Pending(0); pending {
				t.Fatal("there is something to write")
			}
			now += time.Hour
			mustMove(t, m, now, "ann", heater, on, DefaultMaxOn)
			if got := m.Status(now, 0).Left; got != DefaultMaxOn {
				t.Errorf("left %v", got)
			}
		})
	}
}

func TestUnlimited(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", valve, off, Unlimited)
	settle(m, now)
	if at, ok := m.Next(); !ok || at != Unlimited {
		t.Errorf("next %v %v", at, ok)
	}
	for _, late := range []Time{time.Hour, 1e6 * time.Hour, Unlimited - 1} {
		m.Tick(late)
		want(t, m, 2, off)
		if s := m.Status(late, 2); s.Left <= 0 || s.Holder != "ann" {
			t.Errorf("at %v: %+v", late, s)
		}
	}
	mustMove(t, m, Unlimited-time.Second, "ann", valve, off, Unlimited)
	mustMove(t, m, Unlimited-time.Second, "ann", valve, off, 0)
	want(t, m, 2, off)

	// A finite lease of an unlimited output ends like any other.
	m, now = rested()
	mustMove(t, m, now, "ann", valve, off, time.Hour)
	m.Tick(now + time.Hour)
	want(t, m, 2, on)

	// A rest that would overflow does not wrap round to none.
	p := policies()[0]
	p.Rest = Unlimited
	m = NewMachine([]Policy{p}, false)
	settle(m, time.Hour)
	wantFault(t, m.Move(2*time.Hour, "ann", heater, on, 0), device.Unsafe, "rests")
}

func TestAdd(t *testing.T) {
	for _, tt := range []struct{ t, d, want time.Duration }{
		{0, 0, 0}, {1, 2, 3}, {0, Unlimited, Unlimited}, {1, Unlimited, Unlimited},
		{Unlimited, Unlimited, Unlimited}, {Unlimited - 1, 1, Unlimited}, {Unlimited - 1, 2, Unlimited},
	} {
		if got := add(tt.t, tt.d); got != tt.want {
			t.Errorf("add(%d, %d) = %d, want %d", tt.t, tt.d, got, tt.want)
		}
	}
	for _, tt := range []struct{ d, want time.Duration }{
		{0, 0}, {1, time.Second}, {time.Second, time.Second}, {time.Second + 1, 2 * time.Second},
	} {
		if got := roundUp(tt.d); got != tt.want {
			t.Errorf("roundUp(%v) = %v, want %v", tt.d, got, tt.want)
		}
	}
	if got := roundUp(Unlimited); got <= 0 {
		t.Errorf("roundUp(Unlimited) = %v", got)
	}
}

// Anybody may return any output to safe, in any state, with any length.
func TestSafeIsNeverRefused(t *testing.T) {
	states := map[string]func(m *Machine, now Time){
		"at safe": func(*Machine, Time) {},
		"busy":    func(m *Machine, now Time) { _ = m.Move(now, "bob", heater, on, 0); settle(m, now) },
		"stopped": func(m *Machine, _ Time) { m.Stop() },
		"parked":  func(m *Machine, _ Time) { m.Park() },
		"spent": func(m *Machine, now Time) {
			_ = m.Move(now, "bob", heater, on, DefaultMaxOn)
			settle(m, now)
			m.Tick(now + DefaultMaxOn)
		},
		"resting": func(m *Machine, now Time) {
			_ = m.Move(now, "bob", heater, on, DefaultMaxOn)
			settle(m, now)
			m.Tick(now + DefaultMaxOn)
			settle(m, now+DefaultMaxOn)
		},
		"faulted": func(m *Machine, now Time) {
			_ = m.Move(now, "bob", heater, on, 0)
			m.Driving(0)
			m.Applied(now, 0, on, errors.New("loose"))
		},
	}
	returns := map[string]func(m *Machine, now Time) error{
		"release":              func(m *Machine, _ Time) error { return m.Release(heater) },
		"move":                 func(m *Machine, now Time) error { return m.Move(now, "ann", heater, off, 0) },
		"move by nobody":       func(m *Machine, now Time) error { return m.Move(now, "", heater, off, 0) },
		"move for too long":    func(m *Machine, now Time) error { return m.Move(now, "ann", heater, off, time.Hour) },
		"move for less than 0": func(m *Machine, now Time) error { return m.Move(now, "ann", heater, off, -time.Hour) },
	}
	for state, into := range states {
		for name, back := range returns {
			t.Run(state+", "+name, func(t *testing.T) {
				m, now := rested()
				into(m, now)
				if err := back(m, now+DefaultMaxOn); err != nil {
					t.Error(err)
				}
				want(t, m, 0, off)
				if s := m.Status(now+DefaultMaxOn, 0); s.Holder != "" || s.Left != 0 {
					t.Errorf("it is still held: %+v", s)
				}
			})
		}
	}
	t.Run("minus nought is nought", func(t *testing.T) {
		m, now := rested()
		m.Stop()
		if err := m.Move(now, "ann", vent, device.Number(math.Copysign(0, -1)), 0); err != nil {
			t.Error(err)
		}
	})
}

// After a release the next holder need not wait.
func TestReleaseByAnybody(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 0)
	settle(m, now)
	wantFault(t, m.Move(now, "bob", heater, on, 0), device.Busy)
	if err := m.Release(heater); err != nil {
		t.Fatal(err)
	}
	want(t, m, 0, off)
	settle(m, now)
	mustMove(t, m, now, "bob", heater, on, 0)
	if s := m.Status(now, 0); s.Holder != "bob" {
		t.Errorf("%+v", s)
	}
}

func TestFaultAndBack(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 0)
	m.Driving(0)
	m.Applied(now, 0, on, errors.New("loose"))
	s := m.Status(now, 0)
	if s.Fault != "loose" || s.Safe || !s.Value.IsZero() || s.Holder != "" {
		t.Errorf("%+v", s)
	}
	if v, pending := m.Pending(0); !pending || v != off {
		t.Errorf("pending %v %v", v, pending)
	}
	m.Driving(0)
	m.Applied(now, 0, off, errors.New("still loose"))
	wantFault(t, m.Move(now, "ann", heater, on, 0), device.Offline, "still loose")
	mustMove(t, m, now, "ann", valve, off, 0) // the others do not suffer
	m.Driving(0)
	m.Applied(now, 0, off, nil)
	mustMove(t, m, now, "ann", heater, on, 0)
}

// While a write is on its way, nothing is known to agree.
func TestWriteInFlightIsPending(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 0)
	m.Driving(0)
	_ = m.Release(heater)
	if v, pending := m.Pending(0); !pending || v != off {
		t.Errorf("pending %v %v while on is being written", v, pending)
	}
	if s := m.Status(now, 0); s.Safe {
		t.Errorf("%+v while on is being written", s)
	}
	m.Applied(now, 0, on, nil)
	if v, pending := m.Pending(0); !pending || v != off {
		t.Errorf("pending %v %v after on was written", v, pending)
	}
	settle(m, now)
	if s := m.Status(now, 0); !s.Safe {
		t.Errorf("%+v", s)
	}
}

func TestStopAndReset(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, 0)
	mustMove(t, m, now, "bob", vent, device.Number(40), 0)
	mustMove(t, m, now, "cid", valve, off, 0)
	settle(m, now)
	m.Stop()
	for i, p := range policies() {
		if v, pending := m.Pending(i); !pending || v != p.Safe {
			t.Errorf("%s: pending %v %v", p.Output, v, pending)
		}
	}
	if _, ok := m.Next(); ok || !m.Stopped() {
		t.Error("a stop leaves leases behind")
	}
	m.Reset()
	for i, p := range policies() {
		if v, _ := m.Pending(i); v != p.Safe || m.Stopped() {
			t.Errorf("%s came back by itself", p.Output)
		}
	}
	settle(m, now)
	mustMove(t, m, now, "ann", heater, on, 0)

	if m := NewMachine(policies(), true); !m.Stopped() {
		t.Error("the latch was forgotten")
	}
}

func moveAndBack(m *Machine, now Time) {
	if m.Move(now, "ann", heater, on, time.Second) != nil {
		panic("refused")
	}
	m.Driving(0)
	m.Applied(now, 0, on, nil)
	m.Tick(now + time.Second)
	m.Driving(0)
	m.Applied(now+time.Second, 0, off, nil)
	m.Next()
	m.Status(now, 0)
}

func TestMachineDoesNotAllocate(t *testing.T) {
	everything := policies()
	everything[0].Duty, everything[0].Rate = Duty{time.Hour, 2 * time.Hour}, Rate{mostMoves, time.Hour}
	everything[0].MinOn, everything[0].MinOff = time.Second, time.Second
	everything[0].Interlock, everything[1].Interlock = Interlock{"room", time.Second}, Interlock{"room", time.Second}
	everything[0].Requires = Requirement{Point: tankLevel, Within: device.Range{Min: 0, Max: 1}, MaxAge: time.Hour}
	everything[1].Slew = Slew{PerSecond: 45}
	for name, ps := range map[string][]Policy{"plain": policies(), "every limit": everything} {
		m, now := rested(ps...)
		now += time.Hour
		if n := testing.AllocsPerRun(100, func() {
			m.Told(now, tankLevel, true, device.Number(1), 0)
			moveAndBack(m, now)
			now += time.Minute
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkMachine(b *testing.B) {
	m, now := rested()
	b.ReportAllocs()
	for b.Loop() {
		moveAndBack(m, now)
		now += time.Minute
	}
}
