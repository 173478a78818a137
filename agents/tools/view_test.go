package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"
)

// TestView: no name that a principal does not see is in any result of the agent.
func TestView(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		for _, address := range []string{"greenhouse/temperature", "greenhouse/humidity", "outside/temperature"} {
			r.put(address, device.Reading{Point: address, Value: device.Number(20), Quality: device.Stale, Why: "old", At: time.Now()})
		}
		may := map[string][]string{
			"list_points": {"greenhouse/temperature"}, "read_points": {"greenhouse/temperature"}, "site_status": {"greenhouse/temperature"},
			"set_level": {"greenhouse/vent"}, "switch_output": {"greenhouse/vent"}, "release_output": {"greenhouse/vent"},
		}
		seen := r.seeing(t, func(ask agents.Ask) bool {
			all, ok := may[ask.Name()]
			return ok && (len(ask.Points) > 0 || ask.Effect == agents.Reads) && !slices.ContainsFunc(ask.Points, func(p string) bool { return !slices.Contains(all, p) })
		})
		var said strings.Builder
		for _, tool := range seen.tools() {
			fmt.Fprintf(&said, "%s %s %s\n", tool.Name, tool.Input, tool.Description)
		}
		for _, call := range [][2]string{
			{"list_points", `{}`}, {"read_points", `{}`}, {"read_points", `{"points":["x/y"]}`}, {"site_status", `{}`}, {"set_level", `{}`}, {"switch_output", `{}`},
			{"release_output", `{"output":"x/y"}`}, {"read_history", `{"point":"outside/temperature"}`}, {"emergency_stop", `{}`}, {"show_text", `{}`},
		} {
			if res, err := seen.call(anna, call[0], call[1]); err != nil {
				fmt.Fprintln(&said, err)
			} else {
				text, _ := json.Marshal(res.Value)
				fmt.Fprintf(&said, "%s\n", text)
			}
		}
		fmt.Fprintln(&said, seen.resources(), seen.templates(), seen.prompts())
		for _, address := range []string{"greenhouse/humidity", "outside/temperature"} {
			if _, err := seen.ReadResource(t.Context(), anna, agents.PointURI(address)); device.AsFault(err).Kind != device.Denied {
				t.Error(address, err)
			}
		}
		for _, argument := range []string{"device", "point"} {
			fmt.Fprintln(&said, must(seen.Complete(t.Context(), anna, tools.Reference{URITemplate: agents.PointURI("{device}/{point}")}, argument, "")).Values)
		}
		all := said.String()
		if !strings.Contains(all, "greenhouse/temperature") || !strings.Contains(all, "greenhouse/vent") {
			t.Errorf("it does not see its own:\n%s", all)
		}
		for _, p := range r.addresses() {
			if p != "greenhouse/temperature" && p != "greenhouse/vent" && strings.Contains(all, p) {
				t.Errorf("it is told of %s:\n%s", p, all)
			}
		}
		for _, word := range []string{"outside", "humidity", "heater", "read_history ", "emergency_stop "} {
			if strings.Contains(all, word) {
				t.Errorf("it is told of %s:\n%s", word, all)
			}
		}
	})
}

// TestNamesAreExact: a point that a caller may not see is not reached by another spelling of its name.
func TestNamesAreExact(t *testing.T) {
	greenhouse(t, func(t *testing.T, all *rig) {
		const mine, device, point = "greenhouse/vent", "greenhouse", "heater"
		const other = device + "/" + point
		r := all.seeing(t, func(ask agents.Ask) bool {
			return !slices.ContainsFunc(ask.Points, func(p string) bool { return p != mine })
		})
		for _, name := range []string{
			other, strings.ToUpper(other), "Greenhouse/heater", other + " ", " " + other, "\t" + other, other + "\n", other + "\x00", "\x00" + other,
			other + "\u200b", "\ufeff" + other, device + "\uff0f" + point, device + "\u2215" + point, device + "//" + point, device + "/./" + point,
			"./" + other, "/" + other, other + "/", mine + "/../" + point, device + "/../" + other, device + `\` + point, device + "%2f" + point,
			device + "." + point, "greenh\u043euse/heater", "greenho\u0301use/heater", other + "?", other + "#" + mine, mine + "," + other,
			mine + " " + other, "*", "*/*", device, device + "/*", device + "/", "../" + other, "${" + other + "}", "",
		} {
			quoted := string(must(json.Marshal(name)))
			for tool, args := range map[string]string{
				"read_points": `{"points":[` + quoted + `]}`, "read_history": `{"point":` + quoted + `}`, "release_output": `{"output":` + quoted + `}`,
				"switch_output": `{"output":` + quoted + `,"on":true}`, "set_level": `{"output":` + quoted + `,"value":1}`,
			} {
				if _, err := r.call(anna, tool, args); err == nil {
					t.Errorf("%s %s is done", tool, args)
				}
			}
			if got, err := r.ReadResource(t.Context(), anna, agents.PointURI(name)); err == nil {
				t.Errorf("the resource %q is read: %v", name, got)
			}
		}
		for _, uri := range []string{"AGENTSITE:///" + other, "agentsite://" + other, "agentsite://localhost/" + other, "agentsite:" + other, other, "agentsite:///" + mine + "?point=" + point} {
			if got, err := r.ReadResource(t.Context(), anna, uri); err == nil {
				t.Errorf("%q is read: %v", uri, got)
			}
		}
		for _, tool := range []string{"Set_Level", "set_level ", " set_level", "set-level", "set_level\x00", "set_level\u200b", "things/set_level", "read_points;set_level", "owner/reset", ""} {
			if _, err := r.call(anna, tool, `{"output":"`+mine+`","value":1}`); err == nil {
				t.Errorf("the tool %q is there", tool)
			}
		}
		if _, err := r.call(anna, "set_level", `{"output":"`+mine+`","value":1}`); err != nil {
			t.Error("nothing is shown by this:", err)
		}
		for _, s := range r.guard.Status() {
			if !s.Safe && s.Output != mine {
				t.Errorf("%s has moved", s.Output)
			}
		}
	})
}

// TestViewOfWhatMatters: a principal with a partial view is told of an output's requirements,
// interlocks and holder as far as it may see them, and otherwise only that they exist. A principal
// with a full view is told all.
func TestViewOfWhatMatters(t *testing.T) {
	const vent, pump, needed = "greenhouse/vent", "greenhouse/pump", "outside/temperature"
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wire(t, "greenhouse", "greenhouse", "outside", "climate"), func(p *guard.Policy) {
			switch p.Output {
			case vent:
				p.Requires = guard.Requirement{Point: needed, Within: device.Range{Min: 5, Max: 30}, MaxAge: time.Hour}
				fallthrough
			case pump:
				p.Interlock = guard.Interlock{Group: "water", Gap: time.Second}
			}
		})
		defer r.stop()
		time.Sleep(time.Minute)
		seeing := func(points ...string) *rig {
			return r.seeing(t, func(ask agents.Ask) bool {
				return !slices.ContainsFunc(ask.Points, func(p string) bool { return !slices.Contains(points, p) })
			})
		}
		views := map[string]*rig{"all": r, "narrow": seeing(vent), "wide": seeing(vent, pump, needed)}
		// says asks for all that there is to be said of the vent, in every way.
		says := func(view *rig) string {
			t.Helper()
			all := view.says(t, "list_points", `{}`) + view.says(t, "site_status", `{}`)
			contents, err := view.ReadResource(t.Context(), anna, agents.PointURI(vent))
			if err != nil {
				t.Fatal(err)
			}
			made := view.says(t, "set_level", `{"output":"`+vent+`","value":40}`)
			return strings.Join([]string{all, contents[0].Text, made}, "\n")
		}
		step := func(what string, want map[string][]string) {
			for name, view := range views {
				said := says(view)
				for _, words := range want[name] {
					if !strings.Contains(said, words) {
						t.Errorf("%s, who sees %s is not told %q:\n%s", what, name, words, said)
					}
				}
				for _, word := range []string{needed, "water", pump, "bob", "37.25"} {
					if name == "narrow" && strings.Contains(said, word) || name == "wide" && word == "bob" && strings.Contains(said, word) {
						t.Errorf("%s, who sees %s is told of %s:\n%s", what, name, word, said)
					}
				}
			}
		}
		outside := func(n float64) {
			r.guard.Told(device.Reading{Point: needed, Value: device.Number(n), Quality: device.Good, At: time.Now()})
		}
		limits := `"limits":"alone in water; needs outside/temperature within 5..30"`
		outside(37.25)
		step("when it is too hot", map[string][]string{
			"all":    {limits, `"needs":"outside/temperature within 5..30: it was 37.25"`, "unsafe: greenhouse/vent needs outside/temperature "},
			"wide":   {limits, `"needs":"outside/temperature within 5..30: it was 37.25"`, "unsafe: greenhouse/vent needs outside/temperature "},
			"narrow": {`"needs":"something that you may not see"`, "unsafe: greenhouse/vent needs something else first"},
		})
		outside(20)
		if _, err := r.guard.Move(t.Context(), "bob", pump, device.Bool(true), time.Minute); err != nil {
			t.Fatal(err)
		}
		step("when bob has the pump", map[string][]string{
			"all":    {"unsafe: greenhouse/vent is interlocked with greenhouse/pump, which bob holds", `"held_by":"bob"`},
			"wide":   {"unsafe: greenhouse/vent is interlocked", `"output":"greenhouse/pump"`, `"held_by":"somebody else"`},
			"narrow": {"unsafe: greenhouse/vent is interlocked"},
		})
		r.guard.Release(t.Context(), pump)
		step("just after", map[string][]string{
			"all": {"been safe for 1s"}, "wide": {"been safe for 1s"}, "narrow": {"interlocked with another output"},
		})
		time.Sleep(2 * time.Second)
		if _, err := r.guard.Move(t.Context(), "bob", vent, device.Number(10), time.Minute); err != nil {
			t.Fatal(err)
		}
		step("when bob has it", map[string][]string{
			"all":    {"busy: greenhouse/vent is held by bob for another 1m", `"held_by":"bob"`},
			"wide":   {"busy: greenhouse/vent is held by somebody else for another 1m", `"held_by":"somebody else"`},
			"narrow": {"busy: greenhouse/vent is held by somebody else for another 1m", `"held_by":"somebody else"`},
		})
		r.guard.Release(t.Context(), vent)
		time.Sleep(2 * time.Second)
		own := []string{`"held_by":"anna"`, `"seconds_left":60`}
		for name, view := range views { // the second time it has it
			if says(view); !strings.Contains(says(view), own[0]) || !strings.Contains(says(view), own[1]) {
				t.Errorf("who sees %s has it, and is told %s", name, says(view))
			}
		}
	})
}
