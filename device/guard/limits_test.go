package guard

import (
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

// TestForEver: whatever two callers do, once a second for hours, max_on and duty hold,
// and the output is not useless.
func TestForEver(t *testing.T) {
	const maxOn, duty, window = 10 * time.Minute, 20 * time.Minute, time.Hour
	value := func(n int) device.Value { return device.Number(float64(1 + n%90)) }
	for name, act := range map[string]func(m *Machine, now Time, n int){
		"renews for ever": func(m *Machine, now Time, _ int) { _ = m.Move(now, "ann", vent, value(1), maxOn) },
		"changes the value for ever": func(m *Machine, now Time, n int) {
			_ = m.Move(now, "ann", vent, value(n), maxOn)
		},
		"takes turns with a second caller": func(m *Machine, now Time, n int) {
			_ = m.Release(vent)
			_ = m.Move(now, []string{"ann", "bob"}[n%2], vent, value(1), maxOn)
		},
		"takes turns with safe": func(m *Machine, now Time, n int) {
			if n%2 == 0 {
				_ = m.Release(vent)
				return
			}
			_ = m.Move(now, "ann", vent, value(1), maxOn)
		},
		"takes over": func(m *Machine, now Time, n int) {
			_ = m.TakeOver([]string{"ann", "bob"}[n%2], vent)
			_ = m.Move(now, []string{"ann", "bob"}[n%2], vent, value(1), maxOn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies()[1]
			p.Lease, p.MaxOn, p.Rest, p.Duty = 0, maxOn, DefaultRest, Duty{duty, window}
			m := NewMachine([]Policy{p}, false)
			var trips []trip // as the hardware saw them
			begun, longest, most, total := Time(-1), time.Duration(0), time.Duration(0), time.Duration(0)
			for n := range 8 * 3600 {
				now := Time(n) * time.Second
				m.Tick(now)
				act(m, now, n)
				settle(m, now)
				switch isAway := m.outputs[0].have != p.Safe; {
				case isAway && begun < 0:
					begun = now
				case !isAway && begun >= 0:
					trips, begun = append(trips, trip{begun, now}), -1
				}
				// Away without a rest that was long enough, and away in the last hour.
				sum, unbroken, next := time.Duration(0), time.Duration(0), now
				resting := false
				if begun >= 0 {
					sum, unbroken, next = min(now-begun, window), now-begun, begun
				}
				for k := len(trips) - 1; k >= 0 && trips[k].to > now-window; k-- {
					sum += trips[k].to - max(trips[k].from, now-window)
					resting = resting || next-trips[k].to >= DefaultRest
					if !resting {
						unbroken += trips[k].to - trips[k].from
					}
					next = trips[k].from
				}
				most, longest = max(most, sum), max(longest, unbroken)
				if begun >= 0 {
					total += time.Second
				}
			}
			if longest > maxOn || most > duty {
				t.Errorf("away for %v without a rest, for %v in an hour", longest, most)
			}
			if total < 8*duty*9/10 {
				t.Errorf("away for only %v in eight hours", total)
			}
		})
	}
}

// TestMinOff: a compressor rests each time, and after a start, and its return is no
// sooner undone.
func TestMinOff(t *testing.T) {
	p := policies()[0]
	p.MinOff, p.Rest = 3*time.Minute, 3*time.Minute
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	wantFault(t, m.Move(3*time.Minute-1, "ann", heater, on, 0), device.Unsafe, "rests at safe")
	now := 3 * time.Minute
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	_ = m.Release(heater)
	want(t, m, 0, off)
	wantFault(t, m.Move(now, "ann", heater, on, 0), device.Unsafe, "on its way", "3m")
	settle(m, now)
	wantFault(t, m.Move(now+time.Minute, "bob", heater, on, 0), device.Unsafe, "min_off", "2m")
	if got := m.Status(now+time.Minute, 0).Rest; got != 2*time.Minute {
		t.Errorf("rest %v", got)
	}
	mustMove(t, m, now+3*time.Minute, "bob", heater, on, DefaultMaxOn)
	if got := m.Status(now+3*time.Minute, 0).Left; got != DefaultMaxOn {
		t.Errorf("left %v after a rest", got)
	}
}

// TestMinOn: neither another value nor another trip before min_on is over, but safe at
// once; renewals only lengthen.
func TestMinOn(t *testing.T) {
	p := policies()[1]
	p.Lease, p.MinOn = 0, 20*time.Second
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	now := 20 * time.Second // the start was a change, for all that is known
	wantFault(t, m.Move(now-1, "ann", vent, device.Number(40), 0), device.Unsafe, "min_on", "1s")
	wantFault(t, m.Move(now, "ann", vent, device.Number(40), 20*time.Second-1), device.Invalid, "min_on", "ask for 20s or longer")
	mustMove(t, m, now, "ann", vent, device.Number(40), 20*time.Second)
	settle(m, now)
	wantFault(t, m.Move(now+5*time.Second, "ann", vent, device.Number(50), 0), device.Unsafe, "keeps a value", "15s")
	wantFault(t, m.Move(now+5*time.Second, "ann", vent, device.Number(40), 10*time.Second), device.Invalid, "15s")
	mustMove(t, m, now+5*time.Second, "ann", vent, device.Number(40), 15*time.Second)
	if err := m.Release(vent); err != nil {
		t.Error(err)
	}
	want(t, m, 0, p.Safe)
	settle(m, now+5*time.Second)
	wantFault(t, m.Move(now+10*time.Second, "bob", vent, device.Number(40), 0), device.Unsafe, "10s")
	if got := m.Status(now+10*time.Second, 0).Rest; got != 10*time.Second {
		t.Errorf("rest %v", got)
	}
	mustMove(t, m, now+20*time.Second, "bob", vent, device.Number(40), 0)

	// Too little of max_on is left for another value.
	now += 20 * time.Second
	settle(m, now)
	mustMove(t, m, now+time.Minute, "bob", vent, device.Number(40), 0)
	wantFault(t, m.Move(now+110*time.Second, "bob", vent, device.Number(50), 0), device.Unsafe, "return it")
}

// TestMinOnAndMaxOn: the rest of max_on after some moves has to be enough for min_on, or the output
// rests.
func TestMinOnAndMaxOn(t *testing.T) {
	p := policies()[0]
	p.MaxOn, p.MinOn = time.Minute, 20*time.Second
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	now := time.Minute
	mustMove(t, m, now, "ann", heater, on, 45*time.Second)
	settle(m, now)
	now += 45 * time.Second
	m.Tick(now)
	settle(m, now)
	wantFault(t, m.Move(now+time.Second, "ann", heater, on, 0), device.Unsafe, "max_on", "9s")
	mustMove(t, m, now+DefaultRest, "ann", heater, on, time.Minute)
}

// TestRate: moves count over all callers, returns and renewals do not, and a start does
// not forget.
func TestRate(t *testing.T) {
	p := policies()[1]
	p.Rate = Rate{3, time.Hour}
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	granted := func(now Time, holder string, v float64) bool {
		err := m.Move(now, holder, vent, device.Number(v), 0)
		if err != nil {
			wantFault(t, err, device.Unsafe, "moved 3 times in 1h, over all callers")
		}
		settle(m, now)
		return err == nil
	}
	// After a start, one in twenty minutes.
	for minute, n := Time(0), 0; minute < 60; minute++ {
		if granted(minute*time.Minute+10*time.Second, "ann", 40) {
			n++
		}
		_ = m.Release(vent)
		settle(m, minute*time.Minute+10*time.Second)
		if limit := int(minute/20) + 1; n > limit || minute == 25 && n == 0 {
			t.Fatalf("minute %d: %d moves", minute, n)
		}
	}
	now := 3 * time.Hour
	if !granted(now, "ann", 40) || !granted(now+time.Second, "ann", 41) || !granted(now+2*time.Second, "ann", 41) {
		t.Error("refused within the rate")
	}
	_ = m.Release(vent)
	settle(m, now+3*time.Second)
	if !granted(now+4*time.Second, "bob", 40) || granted(now+5*time.Second, "bob", 41) {
		t.Error("the third is granted, the fourth is not")
	}
	if !granted(now+6*time.Second, "bob", 40) {
		t.Error("a renewal was refused")
	}
	if got := m.Status(now+20*time.Minute, 0).Rest; got != 0 {
		t.Errorf("rest %v while it is held", got)
	}
	_ = m.Release(vent)
	settle(m, now+time.Minute)
	wait := m.Status(now+time.Minute, 0).Rest
	if wait < 59*time.Minute || wait > 61*time.Minute {
		t.Errorf("rest %v", wait)
	}
	if granted(now+time.Minute+wait-1, "ann", 40) || !granted(now+time.Minute+wait, "ann", 40) {
		t.Error("it may not be moved when it says")
	}
}

// TestDutyAfterStart: a start gives nothing back, and takes an output's use for no
// longer than a thirtieth of the window.
func TestDutyAfterStart(t *testing.T) {
	p := policies()[0]
	p.Duty = Duty{20 * time.Minute, time.Hour}
	m := NewMachine([]Policy{p}, false)
	settle(m, 0)
	err := m.Move(time.Minute, "ann", heater, on, 0)
	wantFault(t, err, device.Unsafe, "20m in 1h", "try again in 1m")
	if got := m.Status(time.Minute, 0).Rest; got != time.Minute {
		t.Errorf("rest %v", got)
	}
	mustMove(t, m, 2*time.Minute, "ann", heater, on, 0)
	if got := m.Status(2*time.Minute, 0).Left; got > 40*time.Second || got < 19*time.Second {
		t.Errorf("left %v", got)
	}
	settle(m, 2*time.Minute)
	at, _ := m.Next()
	m.Tick(at)
	want(t, m, 0, off)
	if s := m.Status(at, 0); s.Why != "its duty was spent" {
		t.Errorf("%+v", s)
	}
}

func TestTakeOver(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	wantFault(t, m.TakeOver("", heater), device.Denied, heater)
	wantFault(t, m.TakeOver("owner", "room/ghost"), device.Invalid, "room/ghost")
	if err := m.TakeOver("owner", heater); err != nil {
		t.Fatal(err)
	}
	if s := m.Status(now, 0); s.Holder != "owner" || s.Left != time.Minute || s.Value != on {
		t.Errorf("%+v", s)
	}
	wantFault(t, m.Move(now, "ann", heater, on, 0), device.Busy, "owner for another 1m")
	mustMove(t, m, now, "owner", heater, on, 2*time.Minute)
	if err := m.TakeOver("owner", valve); err != nil || m.Status(now, 2).Holder != "" {
		t.Errorf("%v: what nobody holds is held now", err)
	}
}

// TestMoveOver: it takes the lease of one holder and of nobody else, and leaves all as it was
// where it is refused.
func TestMoveOver(t *testing.T) {
	m, now := rested()
	mustMove(t, m, now, "low", vent, device.Number(40), 20*time.Second)
	settle(m, now)
	was := m.Status(now, 1)
	wantFault(t, m.MoveOver(now, "high", "other", vent, device.Number(50), 0), device.Busy, "held by low")
	wantFault(t, m.MoveOver(now, "", "low", vent, device.Number(50), 0), device.Denied, vent)
	wantFault(t, m.MoveOver(now, "high", "low", vent, device.Number(50), DefaultMaxOn+time.Hour), device.Invalid, "at most")
	wantFault(t, m.MoveOver(now, "high", "low", "room/ghost", device.Number(50), 0), device.Invalid, "room/ghost")
	if s := m.Status(now, 1); s != was {
		t.Errorf("%+v after refusals, %+v before", s, was)
	}
	if err := m.MoveOver(now, "high", "low", vent, device.Number(50), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if s := m.Status(now, 1); s.Holder != "high" || s.Goal != device.Number(50) || s.Left != 30*time.Second {
		t.Errorf("%+v", s)
	}
	if err := m.Release(vent); err != nil {
		t.Fatal(err)
	}
	settle(m, now)
	if err := m.MoveOver(now, "high", "low", heater, on, 0); err != nil || m.Status(now, 0).Holder != "high" {
		t.Errorf("%v: nobody held it", err)
	}
}

// TestRenew: a renewal begins no lease, changes no value and ends nobody else's lease.
func TestRenew(t *testing.T) {
	m, now := rested()
	wantFault(t, m.Renew(now, "ann", heater, on, time.Minute), device.Expired, "not held")
	wantFault(t, m.Renew(now, "", heater, on, time.Minute), device.Expired, "not held")
	wantFault(t, m.Renew(now, "ann", heater, off, 0), device.Expired, "not held")
	mustMove(t, m, now, "ann", heater, on, time.Minute)
	settle(m, now)
	wantFault(t, m.Renew(now, "bob", heater, on, time.Minute), device.Expired, "not held")
	wantFault(t, m.Renew(now, "bob", heater, off, 0), device.Expired, "not held")
	if err := m.Renew(now, "ann", heater, on, 2*time.Minute); err != nil || m.Status(now, 0).Left != 2*time.Minute {
		t.Errorf("%v, %+v", err, m.Status(now, 0))
	}
	if err := m.Renew(now, "ann", heater, off, 0); err != nil || m.Status(now, 0).Holder != "" {
		t.Errorf("%v, %+v", err, m.Status(now, 0))
	}
	mustMove(t, m, now, "ann", vent, device.Number(40), 20*time.Second)
	wantFault(t, m.Renew(now, "ann", vent, device.Number(50), time.Minute), device.Expired, "not held")
	wantFault(t, m.Renew(now, "ann", "room/ghost", on, 0), device.Invalid, "room/ghost")
}

// TestWhy: a former holder of an output can read why it went back.
func TestWhy(t *testing.T) {
	for why, end := range map[string]func(m *Machine, now Time){
		"":                            func(m *Machine, _ Time) { _ = m.Release(heater) },
		"its lease was over":          func(m *Machine, now Time) { m.Tick(now + time.Minute) },
		"everything was sent to safe": func(m *Machine, _ Time) { m.Stop() },
		"the hardware did not follow": func(m *Machine, now Time) { m.Applied(now, 0, on, errLoose) },
		"its max_on was spent": func(m *Machine, now Time) {
			_ = m.Move(now, "ann", heater, on, DefaultMaxOn)
			_ = m.Move(now+time.Second, "ann", heater, on, DefaultMaxOn)
			m.Tick(now + DefaultMaxOn)
		},
		"its configuration was changed": func(m *Machine, now Time) {
			p := m.outputs[0].Policy
			p.MaxOn++
			m.Retire(heater)
			m.Adopt(now, []Policy{p})
		},
	} {
		m, now := rested()
		if s := m.Status(now, 0); s.Why == "" {
			t.Error("a start looks like a release")
		}
		mustMove(t, m, now, "ann", heater, on, time.Minute)
		settle(m, now)
		end(m, now)
		if s := m.Status(now+time.Hour, 0); s.Why != why || s.Holder != "" {
			t.Errorf("%+v, want %q", s, why)
		}
	}
}

// TestMistakes: a contradictory policy is refused, with the key that is to blame.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		wrong func(*Policy)
		key   string
		says  string
	}{
		{func(p *Policy) { p.MinOn = 3 * time.Minute }, "min_on", "longer than max_on 2m"},
		{func(p *Policy) { p.MinOn = 31 * time.Second }, "min_on", "longer than lease 30s"},
		{func(p *Policy) { p.MinOn = -1 }, "min_on", "negative"},
		{func(p *Policy) { p.Duty = Duty{0, time.Hour} }, "duty", "no time"},
		{func(p *Policy) { p.Duty = Duty{time.Hour, time.Hour} }, "duty", "no bound"},
		{func(p *Policy) { p.Duty = Duty{time.Minute, 0} }, "duty", "window"},
		{func(p *Policy) { p.Duty = Duty{time.Minute, Unlimited} }, "duty", "window"},
		{func(p *Policy) { p.MinOn, p.Duty = 20*time.Second, Duty{10 * time.Second, time.Hour} }, "duty", "less than min_on"},
		{func(p *Policy) { p.Rate = Rate{0, time.Hour} }, "rate", "no move"},
		{func(p *Policy) { p.Rate = Rate{1, 0} }, "rate", "window"},
		{func(p *Policy) { p.Rate = Rate{mostMoves + 1, time.Hour} }, "rate", "at most"},
		{func(p *Policy) { p.Slew.PerSecond = -1 }, "slew", "above 0"},
		{func(p *Policy) { p.Slew.PerSecond = 1e-9 }, "slew", "so slow"},
		{func(p *Policy) { p.Slew.Ramp = true }, "ramp_to_safe", "needs a slew"},
		{func(p *Policy) { p.Slew = Slew{5, true} }, "ramp_to_safe", "nothing waits longer than 4s"},
		{func(p *Policy) { p.Slew, p.MaxOn, p.Lease = Slew{45, true}, 2*time.Second, 0 }, "ramp_to_safe", "all of max_on"},
		{func(p *Policy) { p.Slew, p.Duty = Slew{45, true}, Duty{2 * time.Second, time.Minute} }, "ramp_to_safe", "all of the duty"},
		{func(p *Policy) { p.Kind, p.Safe, p.Slew = device.KindSwitch, off, Slew{PerSecond: 45} }, "slew", "for levels"},
		{func(p *Policy) { p.Interlock = Interlock{"a", -1} }, "interlock", "negative"},
		{func(p *Policy) { p.Requires = Requirement{Point: vent, Is: on, MaxAge: 1} }, "requires", "itself"},
		{func(p *Policy) { p.Requires = Requirement{Point: "a/b", Is: on} }, "requires", "max_age"},
		{func(p *Policy) { p.Requires = Requirement{Point: "a/b", MaxAge: 1} }, "requires", "either within"},
		{func(p *Policy) {
			p.Requires = Requirement{Point: "a/b", MaxAge: 1, Within: device.Range{Min: 2, Max: 1}}
		}, "requires", "within"},
		{func(p *Policy) { p.Requires = Requirement{Is: on, MaxAge: 1} }, "requires", "no point"},
	} {
		p := policies()[1]
		tt.wrong(&p)
		key, err := p.Mistake()
		if err == nil || key != tt.key || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), vent) {
			t.Errorf("%s: %v, want %s and %q", key, err, tt.key, tt.says)
		}
	}
	for _, p := range modelPolicies() {
		if key, err := p.Mistake(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}
