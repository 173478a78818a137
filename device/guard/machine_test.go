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
