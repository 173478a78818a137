package guard

import (
	"math"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

func TestRequires(t *testing.T) {
	p := policies()[0]
	p.Requires = Requirement{Point: tankLevel, Within: device.Range{Min: 20, Max: 100}, MaxAge: 30 * time.Second}
	for _, tt := range []struct {
		name string
		tell func(m *Machine, now Time)
		says string // of the refusal; "" where it may move
	}{
		{"never told", func(*Machine, Time) {}, "read yet"},
		{"another point", func(m *Machine, now Time) { m.Told(now, "tank/other", true, device.Number(50), 0) }, "read yet"},
		{"well", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(20), 0) }, ""},
		{"a fault", func(m *Machine, now Time) { m.Told(now, tankLevel, false, device.Value{}, 0) }, "cannot be read"},
		{"too low", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(19.5), 0) }, "it was 19.5"},
		{"no number", func(m *Machine, now Time) { m.Told(now, tankLevel, true, on, 0) }, "it was on"},
		{"NaN", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(math.NaN()), 0) }, "it was NaN"},
		{"old", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(50), 30*time.Second) }, "not been read for 30s"},
		{"very old", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(50), Unlimited) }, "not been read for 30s"},
		{"from the future", func(m *Machine, now Time) { m.Told(now, tankLevel, true, device.Number(50), -Unlimited) }, ""},
		{"not so new any more", func(m *Machine, now Time) {
			m.Told(now-20*time.Second, tankLevel, true, device.Number(50), 9*time.Second)
		}, ""},
		{"too old by now", func(m *Machine, now Time) {
			m.Told(now-20*time.Second, tankLevel, true, device.Number(50), 10*time.Second)
		}, "not been read for 30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := rested(p)
			now := time.Minute
			tt.tell(m, now)
			err := m.Move(now, "ann", heater, on, 0)
			if tt.says != "" {
				wantFault(t, err, device.Unsafe, heater, tankLevel+" within 20..100", tt.says)
				if s := m.Status(now, 0); !strings.Contains(s.Lacks, tt.says) {
					t.Errorf("%+v", s)
				}
				return
			}
			if s := m.Status(now, 0); err != nil || s.Lacks != "" {
				t.Errorf("%v %+v", err, s)
			}
			m.Told(now+time.Second, tankLevel, true, device.Number(100.5), 0)
			want(t, m, 0, off)
			if s := m.Status(now+time.Second, 0); !strings.Contains(s.Why, "requires") || s.Lacks != tankLevel+" within 20..100: it was 100.5" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRequiresStaysFresh: a held output goes to safe when the reading is too old, and a
// new one in time keeps it.
func TestRequiresStaysFresh(t *testing.T) {
	p := policies()[0]
	p.Requires = Requirement{Point: door, Is: device.Text("shut"), MaxAge: 30 * time.Second}
	m, _ := rested(p)
	now := time.Minute
	m.Told(now, door, true, device.Text("shut"), 10*time.Second)
	mustMove(t, m, now, "ann", heater, on, 5*time.Minute)
	settle(m, now)
	if at, ok := m.Next(); !ok || at != now+20*time.Second {
		t.Errorf("next %v %v", at, ok)
	}
	m.Told(now+15*time.Second, door, true, device.Text("shut"), 0)
	m.Tick(now + 20*time.Second)
	want(t, m, 0, on)
	m.Tick(now + 45*time.Second)
	want(t, m, 0, off)
	if s := m.Status(now+45*time.Second, 0); s.Holder != "" || s.Why == "" || !strings.HasPrefix(s.Lacks, "door/shut shut: ") || !strings.HasSuffix(s.Lacks, "30s") {
		t.Errorf("%+v", s)
	}
	if !m.Requires(door) || m.Requires(tankLevel) || m.Requires("") {
		t.Error("it does not know what is required")
	}
}

// TestRequiresNewest: an older reading does not replace a newer one, whichever of them
// lets the output move.
func TestRequiresNewest(t *testing.T) {
	p := policies()[0]
	p.Requires = Requirement{Point: door, Is: device.Text("shut"), MaxAge: 30 * time.Second}
	now := time.Minute
	shut, open := device.Text("shut"), device.Text("open")
	for _, tt := range []struct {
		name       string
		held, next device.Value
		good       bool          // the next
		age        time.Duration // of the next; the one held is five seconds old
		may        bool
	}{
		{"older and well", open, shut, true, 6 * time.Second, false},
		{"older and not well", shut, open, true, 6 * time.Second, true},
		{"older and a fault", shut, device.Value{}, false, 6 * time.Second, true},
		{"as old", open, shut, true, 5 * time.Second, true},
		{"newer and well", open, shut, true, 4 * time.Second, true},
		{"newer and not well", shut, open, true, 4 * time.Second, false},
		{"newer and a fault", shut, device.Value{}, false, 4 * time.Second, false},
	} {
		m, _ := rested(p)
		m.Told(now, door, true, tt.held, 5*time.Second)
		m.Told(now+time.Millisecond, door, tt.good, tt.next, tt.age+time.Millisecond)
		if err := m.Move(now+time.Second, "ann", heater, on, 0); (err == nil) != tt.may {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
