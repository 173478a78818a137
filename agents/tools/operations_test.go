package tools_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
)

func TestRefusals(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		// says is how the fault goes on after its kind, and after … what it names besides.
		for _, tt := range []struct{ tool, args, says string }{
			{"switch_output", `{}`, "output is missing"},
			{"switch_output", `{"output":"","on":true}`, "output is missing…greenhouse/heater"},
			{"switch_output", `{"output":"greenhouse/heater"}`, "on is missing"},
			{"switch_output", `{"output":"greenhouse/heater","on":null}`, "switch_output: on: "},
			{"switch_output", `{"output":"greenhouse/heatre","on":true}`, `output: there is no "greenhouse/heatre"…greenhouse/heater?`},
			{"switch_output", `{"output":"greenhouse/vent","on":true}`, "greenhouse/vent is a level…number, as set_level"},
			{"switch_output", `{"output":"greenhouse/vent"}`, "greenhouse/vent is a level…number"},
			{"switch_output", `{"output":"greenhouse/temperature","on":true}`, "greenhouse/temperature is not an output"},
			{"switch_output", `{"output":"greenhouse/message","on":true}`, "greenhouse/message is not an output"},
			{"switch_output", `{"output":"` + strings.Repeat("x", 99) + `","on":true}`, `output: there is no "` + strings.Repeat("x", 60) + `" here`},
			{"switch_output", `{"output":"greenhouse/heater","on":"yes"}`, "switch_output: on: "},
			{"switch_output", `{"output":7,"on":true}`, "switch_output: output: "},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for":5}`, "switch_output: for: "},
			{"switch_output", `{"output":"greenhouse/heater","On":true}`, "switch_output: On: "},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"on":false}`, "switch_output: a name stands twice"},
			{"switch_output", `[]`, "switch_output: must be"},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":0}`, "for_seconds is 0"},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":-5}`, "for_seconds is -5"},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":1e300}`, "for_seconds is 1e+300"},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":1e999}`, "switch_output: for_seconds: "},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":"5"}`, "switch_output: for_seconds: "},
			{"switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":601}`, "greenhouse/heater can be held…10m"},
			{"set_level", `{"output":"greenhouse/vent"}`, "value is missing"},
			{"set_level", `{"output":"greenhouse/vent","value":101}`, "greenhouse/vent takes 0..100; 101 "},
			{"set_level", `{"output":"greenhouse/vent","value":-0.5}`, "greenhouse/vent takes 0..100; -0.5 "},
			{"set_level", `{"output":"greenhouse/vent","value":-1e999}`, "set_level: value: "},
			{"set_level", `{"output":"greenhouse/vent","value":true}`, "set_level: value: "},
			{"set_level", `{"output":"greenhouse/heater","value":1}`, "greenhouse/heater is a switch…true or false, as switch_output"},
			{"set_level", `{"output":"greenhouse/heater"}`, "greenhouse/heater is a switch…true or false"},
			{"set_level", `{"output":"greenhouse/camera","value":1}`, "greenhouse/camera is not an output"},
			{"set_level", `{"output":"greenhouse/none","value":1}`, `output: there is no "greenhouse/none"…greenhouse/vent`},
			{"release_output", `{"output":"greenhouse/temperature"}`, "greenhouse/temperature is not an output"},
			{"show_text", `{"display":"greenhouse/heater","text":"x"}`, "greenhouse/heater is not a display"},
			{"capture_image", `{"camera":"greenhouse/none"}`, `camera: there is no "greenhouse/none"…greenhouse/camera`},
			{"release_output", `{}`, "output is missing"},
			{"emergency_stop", `{"output":"greenhouse/heater"}`, "emergency_stop: output: "},
			{"read_points", `{"points":["greenhouse/camera"]}`, "greenhouse/camera has no readings"},
			{"read_points", `{"points":"greenhouse/heater"}`, "read_points: points: "},
			{"read_points", `{"points":[1]}`, "read_points: points.0: "},
			{"read_points", `{"points":[` + strings.Repeat(`"greenhouse/heater",`, 12) + `"greenhouse/heater"]}`, "points: name each point once…12"},
			{"read_history", `{}`, "point is missing"},
			{"read_history", `{"point":"greenhouse/camera"}`, "greenhouse/camera has no history"},
			{"read_history", `{"point":"outside/humidity","hours":90000}`, "hours is 90000"},
			{"read_history", `{"point":"outside/humidity","hours":0}`, "hours is 0"},
			{"read_history", `{"point":"outside/humidity","steps":1001}`, "steps is 1001"},
			{"read_history", `{"point":"outside/humidity","steps":0.5}`, "steps is 0.5"},
			{"show_text", `{"text":"x"}`, "display is missing…greenhouse/message"},
			{"show_text", `{"display":"greenhouse/message"}`, "text is missing"},
			{"show_text", `{"display":"greenhouse/message","text":"a\u001b[2Jb"}`, "text: control characters…U+001B"},
			{"show_text", `{"display":"greenhouse/message","text":"a\u0000"}`, "text: control characters…U+0000"},
			{"show_text", `{"display":"greenhouse/message","text":"a\u0085"}`, "text: control characters…U+0085"},
			{"show_text", `{"display":"greenhouse/message","text":"` + strings.Repeat("x", 501) + `"}`, "text: at most 500 bytes"},
			{"show_text", `{"display":"greenhouse/message","text":"` + strings.Repeat("x", 500) + `"}`, "message shows 64 characters"},
			{"capture_image", `{"camera":"greenhouse/message"}`, "greenhouse/message is not a camera"},
			{"site_status", `{"verbose":true}`, "site_status: verbose: "},
		} {
			begins, names, _ := strings.Cut(tt.says, "…")
			if got := r.says(t, tt.tool, tt.args); !strings.HasPrefix(got, "invalid: "+begins) || !strings.Contains(got, names) {
				t.Errorf("%s %.100s:\ngot  %s\nwant %s", tt.tool, tt.args, got, tt.says)
			}
		}
		for _, s := range r.guard.Status() {
			if !s.Safe {
				t.Errorf("a refused call has moved %s", s.Output)
			}
		}
	})
}

func TestMoving(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		step := func(tool, args, want string) {
			t.Helper()
			if got := regexp.MustCompile(`,"state":\d+`).ReplaceAllString(r.says(t, tool, args), ""); got != want {
				t.Errorf("%s %s:\ngot  %s\nwant %s", tool, args, got, want)
			}
		}
		step("switch_output", `{"output":"greenhouse/heater","on":true,"for_seconds":5.5}`, `{"output":"greenhouse/heater","value":true,"safe":false,"seconds_left":5.5}`)
		step("switch_output", `{"output":"greenhouse/lamp","on":true}`, `{"output":"greenhouse/lamp","value":true,"safe":false,"seconds_left":60}`)
		step("switch_output", `{"output":"greenhouse/pump","on":true,"for_seconds":0.0011}`, `{"output":"greenhouse/pump","value":true,"safe":false,"seconds_left":0.001}`)
		step("set_level", `{"output":"greenhouse/vent","value":45.5,"for_seconds":600}`, `{"output":"greenhouse/vent","value":45.5,"safe":0,"seconds_left":600}`)
		time.Sleep(time.Second)
		step("site_status", `{}`, `{"site":"test","version":"1.2","uptime_seconds":61,"simulated":true,"emergency_stop":false,`+
			`"devices":[{"device":"greenhouse","model":"simulated greenhouse"},{"device":"outside","model":"simulated climate sensor"}],`+
			`"outputs_away_from_safe":[{"output":"greenhouse/heater","value":true,"held_by":"anna","seconds_left":4.5},`+
			`{"output":"greenhouse/vent","value":45.5,"held_by":"anna","seconds_left":599},{"output":"greenhouse/lamp","value":true,"held_by":"anna","seconds_left":59}]}`)
		if _, err := r.call(agents.Principal{ID: "bert"}, "switch_output", `{"output":"greenhouse/heater","on":true}`); device.AsFault(err).Kind != device.Busy {
			t.Errorf("another's output: %v", err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for _, s := range r.guard.Status() {
			if want := s.Output == "greenhouse/heater" || s.Output == "greenhouse/pump"; s.Safe != want {
				t.Errorf("after its lease %s is at safe: %v", s.Output, s.Safe)
			}
		}
		step("release_output", `{"output":"greenhouse/vent"}`, `{"output":"greenhouse/vent","value":0,"safe":0}`)
		step("switch_output", `{"output":"greenhouse/lamp","on":false,"for_seconds":9}`, `{"output":"greenhouse/lamp","value":false,"safe":false}`)
		step("switch_output", `{"output":"greenhouse/heater","on":true}`, `{"output":"greenhouse/heater","value":true,"safe":false,"seconds_left":60}`)
		step("emergency_stop", `{}`, `{"emergency_stop":true,"outputs":[{"output":"greenhouse/heater","value":false,"safe":false,"asked":false,"set":{"value":false,"age_seconds":0},"measured":{"value":false,"age_seconds":0}},`+
			`{"output":"greenhouse/vent","value":0,"safe":0,"asked":0,"set":{"value":0,"age_seconds":0},"measured":{"value":0,"age_seconds":0}},`+
			`{"output":"greenhouse/pump","value":false,"safe":false,"asked":false,"set":{"value":false,"age_seconds":5},"measured":{"value":false,"age_seconds":0}},`+
			`{"output":"greenhouse/lamp","value":false,"safe":false,"asked":false,"set":{"value":false,"age_seconds":0},"measured":{"value":false,"age_seconds":0}}]}`)
		if got := r.says(t, "switch_output", `{"output":"greenhouse/heater","on":true}`); !strings.HasPrefix(got, "unsafe: the emergency stop ") {
			t.Error(got)
		}
		step("release_output", `{"output":"greenhouse/heater"}`, `{"output":"greenhouse/heater","value":false,"safe":false}`)
		if got := r.says(t, "site_status", `{}`); !strings.Contains(got, `"emergency_stop":true`) {
			t.Error(got)
		}
	})
}

// TestLimits: the limits and the state of an output, and why it cannot move, can be read wherever a
// caller would look.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wire(t, "room", "greenhouse"), func(p *guard.Policy) {
			switch p.Output {
			case "room/vent":
				p.Slew = guard.Slew{PerSecond: 10}
				p.Duty, p.Rate = guard.Duty{Away: 90 * time.Minute, Window: 2 * time.Hour}, guard.Rate{Moves: 5, Window: time.Minute}
			case "room/pump":
				p.MinOn, p.MinOff, p.Rest = 5*time.Second, 30*time.Second, 30*time.Second
				p.Interlock = guard.Interlock{Group: "water", Gap: time.Second}
				p.Requires = guard.Requirement{Point: "tank/level", Within: device.Range{Min: 20, Max: 100}, MaxAge: time.Minute}
			}
		})
		defer r.stop()
		holds := func(what, got string, parts ...string) {
			t.Helper()
			for _, p := range parts {
				if !strings.Contains(got, p) {
					t.Errorf("%s: %s does not say %s", what, got, p)
				}
			}
		}
		resource := func(address string) string {
			t.Helper()
			got, err := r.ReadResource(t.Context(), anna, agents.PointURI(address))
			if err != nil {
				t.Fatal(err)
			}
			return got[0].Text
		}
		synctest.Wait()
		holds("points", r.says(t, "list_points", `{}`), `"limits":"at most 1h30m in 2h; 5 moves in 1m; 10 in a second"`,
			`"limits":"keeps a value 5s; rests 30s; alone in water; needs tank/level within 20..100"`)
		holds("a start", r.says(t, "site_status", `{}`),
			`"outputs_not_ready":[{"output":"room/heater","value":false,"rest_seconds":10,"returned_because":"the process`, `{"output":"room/pump","value":false,"rest_seconds":30,"needs":"tank/level within 20..100: it has not been read yet","returned_because":"the process that drives it was started"}`)
		time.Sleep(10 * time.Minute)
		holds("the pump", resource("room/pump"), `"needs":"tank/level within 20..100: `, `"limits":"keeps`, `"safe":false`)
		r.guard.Told(device.Reading{Point: "tank/level", Value: device.Number(50), Quality: device.Good, At: time.Now()})

		holds("a move", r.says(t, "set_level", `{"output":"room/vent","value":90,"for_seconds":20}`), `"going_to":90,"safe":0,"state":5,"seconds_left":20`)
		r.says(t, "switch_output", `{"output":"room/pump","on":true}`)
		time.Sleep(5 * time.Second)
		holds("on its way", r.says(t, "site_status", `{}`), `"going_to":90,"held_by":"anna","seconds_left":15`)
		holds("the vent", resource("room/vent"), `"max_seconds":600,"limits":"at most`, `"going_to":90,"held_by":"anna","seconds_left":15`)
		r.guard.Told(device.Reading{Point: "tank/level", Quality: device.Bad, At: time.Now()})
		synctest.Wait()
		holds("the pump", resource("room/pump"), `"rest_seconds":30,"needs":"tank/level within 20..100: it cannot be read","returned_because":"`, `it requires`)
		time.Sleep(20 * time.Second)
		holds("the vent", resource("room/vent"), `"returned_because":"its lease was over"`)
	})
}

// TestFollowsNot: an output whose hardware does not answer is away from safe.
func TestFollowsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{only: only{kinds: []device.Kind{device.KindSwitch}}, fails: errLoose}
		r := newRig(t, []node.Device{thing("d", d)})
		synctest.Wait()
		if got, want := r.says(t, "site_status", `{}`), `"outputs_away_from_safe":[{"output":"d/switch","value":null,"fault":"a wire is loose"}]}`; !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want …%s", got, want)
		}
		d.fail(nil)
		time.Sleep(10 * time.Second)
		r.stop()
	})
}

func TestReading(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		now := time.Now()
		r.put("greenhouse/temperature", device.Reading{Value: device.Number(21.5), Quality: device.Good, At: now.Add(-1500 * time.Millisecond)})
		r.put("greenhouse/humidity", device.Reading{Quality: device.Bad, Why: "no answer on the bus", At: now})
		r.put("greenhouse/light", device.Reading{Value: device.Number(100), Quality: device.Stale, Why: "the device has not been read for too long", At: now.Add(-time.Hour)})
		r.put("greenhouse/heater", device.Reading{Value: device.Bool(false), Quality: device.Good, At: now})
		got := r.says(t, "read_points", `{"points":["greenhouse/light","greenhouse/temperature","greenhouse/humidity","greenhouse/heater","greenhouse/soil_moisture","greenhouse/button","greenhouse/heater"]}`)
		want := `{"readings":[` +
			`{"point":"greenhouse/light","value":100,"unit":"lx","time":"1999-12-31T23:01:00.000Z","age_seconds":3600,"quality":"stale","why":"the device has not been read for too long"},` +
			`{"point":"greenhouse/temperature","value":21.5,"unit":"Cel","time":"2000-01-01T00:00:58.500Z","age_seconds":1.5,"quality":"good"},` +
			`{"point":"greenhouse/humidity","value":null,"unit":"%","time":"2000-01-01T00:01:00.000Z","age_seconds":0,"quality":"fault","why":"no answer on the bus"},` +
			`{"point":"greenhouse/heater","value":false,"time":"2000-01-01T00:01:00.000Z","age_seconds":0,"quality":"good"},` +
			`{"point":"greenhouse/soil_moisture","value":null,"unit":"%","age_seconds":0,"quality":"stale","why":"no reading yet"},` +
			`{"point":"greenhouse/button","value":null,"age_seconds":0,"quality":"good","why":"nothing has happened yet"},` +
			`{"point":"greenhouse/heater","value":false,"time":"2000-01-01T00:01:00.000Z","age_seconds":0,"quality":"good"}]}`
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, all := range []string{`{}`, `{"points":[]}`, `{"points":null}`} {
			if n := strings.Count(r.says(t, "read_points", all), `"point":`); n != 12 {
				t.Errorf("%s reads %d points, want 12", all, n)
			}
		}
		status := r.says(t, "site_status", `{}`)
		if want := `{"device":"greenhouse","model":"simulated greenhouse","faults":["humidity: fault no answer on the bus","light: stale the device has not been read for too long"]}`; !strings.Contains(status, want) {
			t.Errorf("got %s, want %s", status, want)
		}
	})
}

func TestListPoints(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		got := r.says(t, "list_points", `{}`)
		for _, want := range []string{
			`{"points":[{"point":"greenhouse/temperature","kind":"measurement","unit":"Cel","description":"of the air","device":"simulated greenhouse"},`,
			`{"point":"greenhouse/humidity","kind":"measurement","unit":"%","description":"relative humidity of the air","device":"simulated greenhouse","min":0,"max":100},`,
			`{"point":"greenhouse/heater","kind":"switch","description":"warms and dries the air","device":"simulated greenhouse","safe":false,"max_seconds":600},`,
			`{"point":"greenhouse/vent","kind":"level","unit":"%","description":"lets the outside air in; 0 is closed","device":"simulated greenhouse","min":0,"max":100,"safe":0,"max_seconds":600},`,
			`{"point":"outside/pressure","kind":"measurement","unit":"Pa","description":"of the air, not reduced to sea level","device":"simulated climate sensor"}]}`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nis not in\n%s", want, got)
			}
		}
		if n := strings.Count(got, `"point":`); n != 14 {
			t.Errorf("%d points", n)
		}
	})
}

func TestHistory(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		now := time.Now() // 2000-01-01T00:01:00Z
		r.past["outside/temperature"] = []device.Summary{
			{At: now.Add(-2 * time.Hour), Min: -3, Mean: 1, Max: 4, Last: 3, Count: 1, Good: 1}, {At: now.Add(-90 * time.Minute), Count: 2},
			{At: now.Add(-time.Hour), Min: -1, Mean: 2, Max: 9, Last: 8, Count: 4, Good: 3},
		}
		for i := range 3 {
			r.changes["greenhouse/heater"] = append(r.changes["greenhouse/heater"], device.Change{At: now.Add(time.Duration(i-3) * time.Hour), Value: device.Bool(i != 1), Holder: []string{"did:key:zAnn", "", "anna"}[i], Cause: []string{"", "its lease was over", ""}[i]})
		}
		r.changes["greenhouse/button"] = []device.Change{{At: now.Add(-3 * time.Hour), Value: device.Bool(true)}, {At: now.Add(-time.Hour), Value: device.Bool(true)}}
		for range 1001 {
			r.changes["greenhouse/vent"] = append(r.changes["greenhouse/vent"], device.Change{At: now.Add(-time.Minute)})
		}
		for _, tt := range []struct{ args, want string }{
			{`"point":"outside/temperature","hours":2,"steps":2`, `{"point":"outside/temperature","unit":"Cel","step_seconds":3600,"min":-3,"mean":1.75,"max":9,"steps":[` +
				`{"time":"1999-12-31T22:01:00.000Z","min":-3,"mean":1,"max":4,"last":3},{"time":"1999-12-31T23:01:00.000Z","min":-1,"mean":2,"max":9,"last":8,"good":0.75}]}`},
			{`"point":"outside/humidity"`, `{"point":"outside/humidity","unit":"%","step_seconds":1800,"steps":[]}`},
			// The value of an output at the beginning, and its changes since.
			{`"point":"greenhouse/heater","hours":2.5`, `{"point":"greenhouse/heater","changes":[{"time":"1999-12-31T21:01:00.000Z","value":true,"held_by":"did:key:zAnn"},` +
				`{"time":"1999-12-31T22:01:00.000Z","value":false,"because":"its lease was over"},{"time":"1999-12-31T23:01:00.000Z","value":true,"held_by":"anna"}]}`},
			{`"point":"greenhouse/heater","from":"1999-12-31T22:30:00Z","to":"1999-12-31T23:30:00+01:00"`, `invalid: from: 1999-12-31T22:30:00.000Z `},
			{`"point":"greenhouse/heater","from":"1999-12-31T23:01:00+01:00","to":"1999-12-31T22:30:00Z"`, `{"point":"greenhouse/heater","changes":[{"time":"1999-12-31T22:01:00.000Z","value":false,"because":"its lease was over"}]}`},
			{`"point":"greenhouse/button","hours":2`, `{"point":"greenhouse/button","changes":[{"time":"1999-12-31T23:01:00.000Z","value":true}]}`},
			{`"point":"outside/humidity","from":"yesterday"`, `invalid: from: "yesterday" `},
			{`"point":"outside/humidity","to":"2026-01-31"`, `invalid: to: "2026-01-31" `},
			{`"point":"outside/humidity","from":"1999-12-31T23:01:00Z","hours":1`, `invalid: from and hours `},
		} {
			if got := r.says(t, "read_history", `{`+tt.args+`}`); got != tt.want && !(strings.HasPrefix(tt.want, "invalid: ") && strings.HasPrefix(got, tt.want)) {
				t.Errorf("%s\ngot  %s\nwant %s", tt.args, got, tt.want)
			}
		}
		if got := r.says(t, "read_history", `{"point":"greenhouse/vent"}`); strings.Count(got, `"time"`) != 500 || !strings.Contains(got, `"cut_off":true`) {
			t.Errorf("%d changes: %.100s", strings.Count(got, `"time"`), got)
		}
		for _, tt := range []struct {
			args  string
			back  time.Duration
			steps int
		}{
			{``, 12 * time.Hour, 24},
			{`,"hours":24,"steps":1000`, 24 * time.Hour, 1000},
			{`,"hours":1,"steps":7.9`, time.Hour, 7},
			{`,"from":"1999-12-31T12:00:00+12:00"`, 24*time.Hour + time.Minute, 24},
		} {
			r.says(t, "read_history", `{"point":"outside/humidity"`+tt.args+`}`)
			if back := r.to.Sub(r.from); back != tt.back || r.steps != tt.steps || !r.to.Equal(now) {
				t.Errorf("%s asks for %v in %d steps, want %v in %d", tt.args, back, r.steps, tt.back, tt.steps)
			}
		}
	})
}

func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{only: only{kinds: []device.Kind{device.KindText}}}
		r := newRig(t, []node.Device{thing("d", d)})
		defer r.stop()
		if got := r.says(t, "show_text", `{"display":"d/text","text":"12 °C\nund <mehr>"}`); d.shown != "text: 12 °C\nund <mehr>" || !strings.HasPrefix(got, `{"display":"d/text","text":"12 °C\nund `) {
			t.Errorf("it shows %q and says %s", d.shown, got)
		}
		d.fails = device.Faultf(device.Offline, "the display is gone")
		if got := r.says(t, "show_text", `{"display":"d/text","text":"x"}`); got != "offline: the display is gone" {
			t.Error(got)
		}
		d.fails = errLoose
		if got := r.says(t, "show_text", `{"display":"d/text","text":"x"}`); got != "internal: a wire is loose" {
			t.Error(got)
		}
	})
}

func TestCapture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake{only: only{kinds: []device.Kind{device.KindImage}}, image: device.Image{MIME: "image/png", Data: []byte("a picture"), At: time.Now()}}
		r := newRig(t, []node.Device{thing("d", d)})
		defer r.stop()
		if got, want := r.says(t, "capture_image", `{"camera":"d/image"}`), `{"camera":"d/image","time":"2000-01-01T00:00:00.000Z","mime_type":"image/png","bytes":9}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		res, err := r.call(anna, "capture_image", `{"camera":"d/image"}`)
		if err != nil || len(res.Content) != 1 || res.Content[0].Image == nil || res.Content[0].Image.MIME != "image/png" || !bytes.Equal(res.Content[0].Image.Data, d.image.Data) {
			t.Errorf("%+v %v", res.Content, err)
		}
		d.fails = errLoose
		if res, err := r.call(anna, "capture_image", `{"camera":"d/image"}`); err == nil || res.Content != nil || res.Value != nil {
			t.Errorf("a picture that failed is %+v", res)
		}
	})
}

// TestDescribedTooMuch: a device that describes what it cannot do is a defect that
// is said, not a panic.
func TestDescribedTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, []node.Device{thing("d", only{kinds: []device.Kind{device.KindText, device.KindImage}})})
		defer r.stop()
		if got := r.says(t, "show_text", `{"display":"d/text","text":"x"}`); !strings.HasPrefix(got, "internal: d/text ") {
			t.Error(got)
		}
		if got := r.says(t, "capture_image", `{"camera":"d/image"}`); !strings.HasPrefix(got, "internal: d/image ") {
			t.Error(got)
		}
	})
}
