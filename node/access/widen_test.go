package access

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"pgregory.net/rapid"
)

// TestWiden: only what the call needs is added, and other limits stay.
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
		{"read *", agents.Ask{Op: agents.OpAsk, Points: []string{"*"}}, ""},
		{"read *", agents.Ask{Tool: "release_output", Points: []string{"pump/relay"}}, "read *, use release_output on pump/relay"},
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

// TestWidenAddsNoMore: a wider permission allows the call, and decides as before about other points and other words.
func TestWidenAddsNoMore(t *testing.T) {
	points := []string{"fan/speed", "fan/light", "lamp/dim", "pump/relay"}
	asks := rapid.Custom(func(t *rapid.T) agents.Ask {
		some := rapid.SliceOfN(rapid.SampledFrom(points), 1, 2).Draw(t, "points")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return agents.Ask{Op: agents.OpRead, Effect: agents.Reads, Points: some}
		case 1:
			return agents.Ask{Op: agents.OpShow, Points: some[:1]}
		case 2:
			return agents.Ask{Tool: "heat", Points: some}
		}
		value := rapid.SampledFrom([]device.Value{{}, device.Bool(true), device.Number(5), device.Number(50)}).Draw(t, "value")
		length := time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second
		return agents.Ask{Op: agents.OpMove, Points: some[:1], Value: value, For: length}
	})
	word := func(ask agents.Ask) string { return cmp.Or(ScopeOf(ask.Name()), ask.Name()) }
	parts := rapid.Custom(func(t *rapid.T) string {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		return pick("word", "read", "set", "show", "use heat on", "use set_level on", "use set_level+switch_output on") + " " +
			pick("where", "*", "fan", "fan/speed", "lamp+pump", "pump/relay") + pick("range", "", " 0..10", " 20..60") +
			pick("lease", "", " max 10s", " max 2m") + pick("rate", "", " 3/h") + pick("confirm", "", " confirm")
	})
	rapid.Check(t, func(t *rapid.T) {
		before, err := ParsePermissions(strings.Join(rapid.SliceOfN(parts, 1, 4).Draw(t, "parts"), ", "))
		if err != nil {
			return // a part hides another
		}
		ask, other := asks.Draw(t, "ask"), asks.Draw(t, "other")
		text, ok := widen(before, ask)
		if !ok {
			return
		}
		after, err := ParsePermissions(text)
		if err == nil {
			_, err = Permit(after, ask)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		had, err := Permit(before, other)
		has, now := Permit(after, other)
		apart := !slices.ContainsFunc(other.Points, func(p string) bool { return slices.Contains(ask.Points, p) })
		if (apart || word(ask) != word(other)) && ((err == nil) != (now == nil) || !reflect.DeepEqual(had, has)) {
			t.Fatalf("%s: %+v, %v; %s: %+v, %v", FormatPermissions(before), had, err, text, has, now)
		}
		if err == nil && (now != nil || had.Confirm && !has.Confirm) {
			t.Fatalf("%s allowed it, and %s: %v, %+v", FormatPermissions(before), text, now, has)
		}
	})
}
