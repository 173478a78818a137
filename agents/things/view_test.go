package things

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestView: of what somebody does not see, no name is in anything that the agent says.
func TestView(t *testing.T) {
	greenhouse(t, func(t *testing.T, r *rig) {
		for _, address := range []string{"greenhouse/temperature", "greenhouse/humidity", "outside/temperature"} {
			r.latest[address] = device.Reading{Point: address, Value: device.Number(20), Quality: device.Stale, Why: "old", At: time.Now()}
		}
		may := map[string][]string{
			"list_points": {"greenhouse/temperature"}, "read_points": {"greenhouse/temperature"}, "site_status": {"greenhouse/temperature"},
			"set_level": {"greenhouse/vent"}, "switch_output": {"greenhouse/vent"}, "release_output": {"greenhouse/vent"},
		}
		v, err := r.View(func(ask agents.Ask) bool {
			all, ok := may[ask.Tool]
			return ok && (len(ask.Points) > 0 || ask.Effect == agents.Reads) && !slices.ContainsFunc(ask.Points, func(p string) bool { return !slices.Contains(all, p) })
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := &rig{Agent: v.(*Agent), shelf: r.shelf}
		var said strings.Builder
		for _, tool := range seen.Tools() {
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
		fmt.Fprintln(&said, seen.Resources(), seen.Templates(), seen.Prompts())
		for _, address := range []string{"greenhouse/humidity", "outside/temperature"} {
			if _, err := seen.ReadResource(t.Context(), anna, URI(address)); err != agents.ErrNotFound {
				t.Error(address, err)
			}
		}
		for _, argument := range []string{"device", "point"} {
			fmt.Fprintln(&said, seen.Complete(anna, agents.Reference{URITemplate: scheme + "{device}/{point}"}, argument, ""))
		}
		all := said.String()
		if !strings.Contains(all, "greenhouse/temperature") || !strings.Contains(all, "greenhouse/vent") {
			t.Errorf("it does not see its own:\n%s", all)
		}
		for _, p := range r.points {
			if p.Address != "greenhouse/temperature" && p.Address != "greenhouse/vent" && strings.Contains(all, p.Address) {
				t.Errorf("it is told of %s:\n%s", p.Address, all)
			}
		}
		for _, word := range []string{"outside", "humidity", "heater", "read_history ", "emergency_stop "} {
			if strings.Contains(all, word) {
				t.Errorf("it is told of %s:\n%s", word, all)
			}
		}
	})
}

// TestLeaseOfAGrant: who may hold an output for so long gets no more where it asks for
// nothing.
func TestLeaseOfAGrant(t *testing.T) {
	for _, tt := range []struct{ asked, most, want time.Duration }{
		{0, 0, 0}, {0, 5 * time.Second, 5 * time.Second}, {0, time.Hour, 0}, {3 * time.Second, 5 * time.Second, 3 * time.Second},
	} {
		if got := within(tt.asked, agents.Limits{Lease: tt.most}); got != tt.want {
			t.Errorf("%v of at most %v is %v, want %v", tt.asked, tt.most, got, tt.want)
		}
	}
}
