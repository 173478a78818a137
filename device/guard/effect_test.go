package guard

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// pumping returns a machine whose heater has just been switched on, and has to have an effect within 5 s of now.
func pumping(t *testing.T, otherwise Otherwise) (*Machine, Time) {
	t.Helper()
	p := policies()[0]
	p.Expects = Expectation{Point: flowRate, Within: device.Range{Min: 0.2, Max: math.Inf(1)}, By: 5 * time.Second, Else: otherwise}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	m, _ := rested(p)
	now := time.Minute
	mustMove(t, m, now, "ann", heater, on, 5*time.Minute)
	settle(m, now)
	return m, now
}

// TestEffect: what shows an effect, and what does not.
func TestEffect(t *testing.T) {
	const s = time.Second
	type reading struct {
		at, age time.Duration // since the move
		good    bool
		v       device.Value
	}
	flows, dry := device.Number(0.2), device.Number(0.19)
	for _, tt := range []struct {
		name string
		told []reading
		is   Effect // 4.999 s after the move
	}{
		{"nothing", nil, Awaited},
		{"one", []reading{{1 * s, 0, true, flows}}, Awaited},
		{"two", []reading{{1 * s, 0, true, flows}, {2 * s, 0, true, flows}}, Confirmed},
		{"the same twice", []reading{{1 * s, 0, true, flows}, {2 * s, 1 * s, true, flows}}, Awaited},
		{"too little", []reading{{1 * s, 0, true, dry}, {2 * s, 0, true, dry}}, Awaited},
		{"noise", []reading{{1 * s, 0, true, flows}, {2 * s, 0, true, dry}, {3 * s, 0, true, flows}, {4 * s, 0, true, dry}}, Awaited},
		{"an older one after a newer one", []reading{{1 * s, 0, true, dry}, {2 * s, 1500 * time.Millisecond, true, flows}, {3 * s, 0, true, flows}}, Awaited},
		{"before the move", []reading{{1 * s, 2 * s, true, flows}, {2 * s, 3 * s, true, flows}, {3 * s, 0, true, flows}}, Awaited},
		{"a fault between", []reading{{1 * s, 0, true, flows}, {2 * s, 0, false, flows}, {3 * s, 0, true, flows}}, Awaited},
		{"stale", []reading{{1 * s, 0, false, flows}, {2 * s, 0, false, flows}}, Awaited},
		{"a pulse, seen twice", []reading{{1 * s, 0, true, flows}, {1*s + 499*time.Millisecond, 0, true, flows}, {2 * s, 0, true, dry}}, Awaited},
		{"long enough", []reading{{1 * s, 0, true, flows}, {1*s + 1, 0, true, flows}, {1*s + 500*time.Millisecond, 0, true, flows}}, Confirmed},
		{"no number", []reading{{1 * s, 0, true, on}, {2 * s, 0, true, on}}, Awaited},
		{"not finite", []reading{{1 * s, 0, true, device.Number(math.Inf(1))}, {2 * s, 0, true, device.Number(math.NaN())}}, Awaited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, now := pumping(t, ElseSafe)
			for _, r := range tt.told {
				m.Told(now+r.at, flowRate, r.good, r.v, r.age)
				m.Told(now+r.at, tankLevel, true, flows, 0)
			}
			m.Tick(now + 5*s - 1)
			want(t, m, 0, on)
			if got := m.Status(now+5*s-1, 0); got.Effect != tt.is {
				t.Errorf("%+v", got)
			}
			end := now + 5*s
			if tt.is == Confirmed {
				end += tt.told[len(tt.told)-1].at
			}
			if at, ok := m.Next(); !ok || at != end {
				t.Errorf("next is %v, want %v", at, end)
			}
			m.Tick(end)
			want(t, m, 0, off)
			if got := m.Status(end, 0); got.Effect != Failed || got.Why != endings[byEffect] || got.Latched || !Broke(got.Why) {
				t.Errorf("%+v", got)
			}
			settle(m, end)
			mustMove(t, m, end+time.Minute, "ann", heater, on, time.Minute)
		})
	}
}

// TestEffectTooLate: a reading that comes when the effect has failed, or was taken too long ago, does not count.
func TestEffectTooLate(t *testing.T) {
	flows := device.Number(1)
	m, now := pumping(t, ElseSafe)
	m.Told(now+time.Second, flowRate, true, flows, 0)
	m.Told(now+5*time.Second, flowRate, true, flows, 0) // before the Tick
	want(t, m, 0, off)

	m, now = pumping(t, ElseAlarm)
	m.Told(now+10*time.Second, flowRate, true, flows, 9*time.Second)
	m.Told(now+10*time.Second, flowRate, true, flows, 5*time.Second)
	if s := m.Status(now+10*time.Second, 0); s.Effect != Failed {
		t.Errorf("%+v", s)
	}
}

// TestEffectLatches: the output is refused until an owner's reset, whoever asks.
func TestEffectLatches(t *testing.T) {
	m, now := pumping(t, ElseLatch)
	now += 5 * time.Second
	m.Tick(now)
	settle(m, now)
	now += time.Hour
	wantFault(t, m.Move(now, "owner", heater, on, time.Minute), device.Unsafe, heater, flowRate, "agentsite reset")
	if s := m.Status(now, 0); !s.Latched || s.Effect != Failed {
		t.Errorf("%+v", s)
	}
	plain, other := m.outputs[0].Policy, m.outputs[0].Policy
	plain.Output, other.Rest = "house/fan", 0
	m.Adopt(now, []Policy{plain}) // the owner takes it away for a while
	m.Adopt(now, []Policy{other})
	settle(m, now)
	wantFault(t, m.Try(now, "ann", heater, on, time.Minute), device.Unsafe, heater, "agentsite reset")
	if s := m.Status(now, 0); !s.Latched || s.Effect != Failed {
		t.Errorf("%+v", s)
	}
	m.Reset()
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	if s := m.Status(now, 0); s.Latched || s.Effect != Awaited {
		t.Errorf("%+v", s)
	}
}

// TestEffectAlarm: the output stays as it is, and the effect may still come.
func TestEffectAlarm(t *testing.T) {
	m, now := pumping(t, ElseAlarm)
	m.Tick(now + 5*time.Second)
	want(t, m, 0, on)
	if s := m.Status(now+5*time.Second, 0); s.Effect != Failed {
		t.Errorf("%+v", s)
	}
	if at, _ := m.Next(); at != now+5*time.Minute {
		t.Errorf("it is woken at %v for an effect that has failed", at)
	}
	m.Told(now+6*time.Second, flowRate, true, device.Number(1), 0)
	m.Told(now+7*time.Second, flowRate, true, device.Number(1), 0)
	if s := m.Status(now+7*time.Second, 0); s.Effect != Confirmed {
		t.Errorf("%+v", s)
	}
	m.Tick(now + 12*time.Second)
	if s := m.Status(now+12*time.Second, 0); s.Effect != Failed {
		t.Errorf("%+v", s)
	}
}

// TestEffectAwaitedAgain: short returns to safe, written or not, give an effect no more time. A rest does.
func TestEffectAwaitedAgain(t *testing.T) {
	m, now := pumping(t, ElseSafe)
	m.outputs[0].MinOff = 0
	for range 4 { // the hardware stays on
		now += time.Second
		if err := m.Release(heater); err != nil {
			t.Fatal(err)
		}
		mustMove(t, m, now, "ann", heater, on, time.Minute)
	}
	if s := m.Status(now, 0); s.Effect != Awaited {
		t.Errorf("%+v", s)
	}
	m.Tick(now + time.Second)
	want(t, m, 0, off)

	m, now = pumping(t, ElseSafe)
	m.outputs[0].MinOff = 0
	trip := func(rest, length time.Duration) {
		t.Helper()
		if err := m.Release(heater); err != nil {
			t.Fatal(err)
		}
		settle(m, now)
		now += rest
		mustMove(t, m, now, "ann", heater, on, time.Minute)
		settle(m, now)
		now += length
		m.Tick(now)
	}
	now += 3 * time.Second
	trip(DefaultRest-1, 2*time.Second)
	if s := m.Status(now, 0); s.Effect != Failed {
		t.Errorf("%+v", s)
	}
	settle(m, now)
	trip(time.Second, 4*time.Second) // failed is failed, and the next is another try
	trip(DefaultRest, 4*time.Second)
	want(t, m, 0, on)
	m.Told(now, flowRate, true, device.Number(1), time.Second)
	m.Told(now, flowRate, true, device.Number(1), 0)
	trip(time.Second, 4*time.Second) // it was confirmed
	want(t, m, 0, on)
}

// TestEffectNotPostponed: neither renewals nor other values give an effect more time.
func TestEffectNotPostponed(t *testing.T) {
	p := policies()[1]
	p.Expects = Expectation{Point: flowRate, Is: on, By: 5 * time.Second}
	m, _ := rested(p)
	now := time.Minute
	for i := range 5 {
		mustMove(t, m, now+time.Duration(i)*time.Second, "ann", p.Output, device.Number(float64(10+i)), 30*time.Second)
		settle(m, now+time.Duration(i)*time.Second)
	}
	m.Tick(now + 5*time.Second)
	want(t, m, 0, p.Safe)
}

func TestExpectationMistakes(t *testing.T) {
	well := Expectation{Point: flowRate, Within: device.Range{Min: 1, Max: 2}, By: time.Second}
	for name, change := range map[string]func(x *Expectation){
		"no point":        func(x *Expectation) { x.Point = "" },
		"itself":          func(x *Expectation) { x.Point = heater },
		"no time":         func(x *Expectation) { x.By = 0 },
		"longer than on":  func(x *Expectation) { x.By = DefaultMaxOn },
		"nothing":         func(x *Expectation) { x.Within = device.Range{} },
		"two":             func(x *Expectation) { x.Is = on },
		"empty":           func(x *Expectation) { x.Within = device.Range{Min: 2, Max: 1} },
		"NaN":             func(x *Expectation) { x.Within.Min = math.NaN() },
		"no such reply":   func(x *Expectation) { x.Else = ElseAlarm + 1 },
		"negative within": func(x *Expectation) { x.By = -1 },
	} {
		p := policies()[0]
		p.Expects = well
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&p.Expects)
		if key, err := p.Mistake(); err == nil || key != "expect" {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
}

// TestEffectLatchIsKept: the output is refused by each later guard, too, until a reset. Where it is not known which
// outputs wait for one, the emergency stop is latched.
func TestEffectLatchIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latch := armed(t)
		latch.Effects = filepath.Join(filepath.Dir(latch.File), "no-effect")
		p := switchOf(pump)
		p.Expects = Expectation{Point: flowRate, Is: on, By: 5 * time.Second, Else: ElseLatch}
		life := func(do func(g *Guard)) {
			t.Helper()
			g, err := New([]Actuated{{Actuator: &hardware{}, Policies: []Policy{p}}}, latch)
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- g.Run(ctx) }()
			time.Sleep(time.Minute) // it has rested
			do(g)
			synctest.Wait()
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		refused := func(g *Guard) {
			t.Helper()
			_, err := g.Move(t.Context(), "ann", pump, on, time.Minute)
			wantFault(t, err, device.Unsafe, pump, "agentsite reset")
		}
		moves := func(g *Guard) {
			t.Helper()
			if _, err := g.Move(t.Context(), "ann", pump, on, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		life(func(g *Guard) {
			moves(g)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			refused(g)
		})
		life(refused)
		life(func(g *Guard) {
			refused(g)
			_, _, stops := g.State()
			if err := g.Reset(stops); err != nil {
				t.Fatal(err)
			}
			moves(g)
		})
		life(moves)
		folder := filepath.Join(t.TempDir(), "gone")
		latch.Effects = filepath.Join(folder, "no-effect")
		life(func(g *Guard) {
			moves(g)
			time.Sleep(10 * time.Second)
			refused(g)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // it is tried again
		})
		life(refused)
		if err := os.Remove(latch.Effects); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(latch.Effects, 0o700); err != nil {
			t.Fatal(err)
		}
		life(func(g *Guard) {
			if !g.Stopped() {
				t.Error("outputs may move, and it is not known which may not")
			}
		})
	})
}
