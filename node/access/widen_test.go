package access

import (
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestWiden: what is added is what the call needs, and other limits stay.
func TestWiden(t *testing.T) {
	move := func(v device.Value, length time.Duration, points ...string) agents.Ask {
		return agents.Ask{Op: agents.OpMove, Value: v, For: length, Points: points}
	}
	on, half := device.Bool(true), device.Number(50)
	read := func(points ...string) agents.Ask {
		return agents.Ask{Op: agents.OpRead, Effect: agents.Reads, Points: points}
	}
	for _, tt := range []struct {
		has  string
		ask  agents.Ask
		want string // "" where nothing is to be added
	}{
		{"read *", move(on, 2*time.Minute, "pump/relay"), "read *, set pump/relay max 2m"},
		{"read *", move(on, 0, "pump/relay"), "read *, set pump/relay"},
		{"read *", move(on, 1500*time.Millisecond, "pump/relay"), "read *, set pump/relay max 2s"},
		{"read *, set pump max 1m", move(on, time.Minute, "pump/relay"), ""},
		{"read *, set pump max 1m 10/h confirm", move(on, 2*time.Minute, "pump/relay"), "read *, set pump/relay max 2m 10/h confirm, set pump max 1m 10/h confirm"},
		{"set pump/relay max 1m, read *", move(on, 2*time.Minute, "pump/relay"), "set pump/relay max 2m, read *"},
		{"use switch_output on pump/relay max 1m, set pump/relay max 1h", move(on, 2*time.Minute, "pump/relay"), "use switch_output on pump/relay max 2m, set pump/relay max 1h"},
		{"use set_level on fan/speed 0..10, set fan/speed max 1m", move(on, 2*time.Minute, "fan/speed"), "use set_level on fan/speed 0..10, set fan/speed max 2m"},
		{"set fan 0..20 max 1h", move(half, time.Minute, "fan/speed"), "set fan/speed 0..50 max 1h, set fan 0..20 max 1h"},
		{"set fan", move(half, time.Minute, "lamp/dim"), "set fan, set lamp/dim max 1m"},
		{"read climate", read("climate/a", "b/c", "b/a", "b/c"), "read climate, read b/a+b/c"},
		{"set fan", read(), "set fan, read *"},
		{"read climate", read(), ""},
		{"read *", agents.Ask{Op: agents.OpStop, Effect: agents.Returns}, "read *, stop"},
		{"read *", agents.Ask{Op: agents.OpAsk, Points: []string{"water_beds"}}, "read *, ask water_beds"},
		{"read *", agents.Ask{Op: agents.OpAsk}, ""},
		{"read *", agents.Ask{Tool: "switch_output"}, ""},
		{"read *", move(on, 0, "a, set *"), ""},
		{"read *", move(on, -time.Second, "pump/relay"), ""},
		{"read *", move(on, 367*24*time.Hour, "pump/relay"), ""},
		{"set pump 0..0", move(device.Value{}, 0, "pump/relay"), ""},
	} {
		has, err := ParsePermissions(tt.has)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := widen(has, tt.ask)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s, %s: %q, %v", tt.has, tt.ask.Name(), got, ok)
		}
		if FormatPermissions(has) != tt.has {
			t.Errorf("%s became %s", tt.has, FormatPermissions(has))
		}
	}
}
