package guard

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

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
		}, DefaultMaxOn, call{"ann", heater, on, 0}, device.Unsafe, []string{heater, "on its way", "10s"}},
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
