//go:build e2e

package access

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// reachable are calls that mallory may not make, by what they are.
var reachable = []struct{ what, tool, args string }{
	{"reading another point of her device: okapi/humidity", "read_points", `{"points":["okapi/humidity"]}`},
	{"reading it beside her own: okapi/humidity", "read_points", `{"points":["okapi/temperature","okapi/humidity"]}`},
	{"reading an output: hartebeest/relay", "read_points", `{"points":["hartebeest/relay"]}`},
	{"reading its past: okapi/humidity", "read_history", `{"point":"okapi/humidity"}`},
	{"switching alice's output on: hartebeest/relay", "switch_output", `{"output":"hartebeest/relay","on":true}`},
	{"switching alice's output off: hartebeest/relay", "switch_output", `{"output":"hartebeest/relay","on":false}`},
	{"returning alice's output: hartebeest/relay", "release_output", `{"output":"hartebeest/relay"}`},
	{"switching a free output: springbok/relay", "switch_output", `{"output":"springbok/relay","on":true}`},
	{"returning a free output: springbok/relay", "release_output", `{"output":"springbok/relay"}`},
	{"stopping everything", "emergency_stop", `{}`},
}

// beyond are calls that the grant does not have, and what it has with values that it does
// not.
func (f *field) beyond(t *testing.T) (all []attack) {
	for _, c := range append(reachable, []struct{ what, tool, args string }{
		{"more than her range", "set_level", `{"output":"yak/level","value":21}`},
		{"a little more than it", "set_level", `{"output":"yak/level","value":20.0000001}`},
		{"all of it", "set_level", `{"output":"yak/level","value":100}`},
		{"less than nothing", "set_level", `{"output":"yak/level","value":-1}`},
		{"longer than she may", "set_level", `{"output":"yak/level","value":10,"for_seconds":31}`},
		{"a little longer", "set_level", `{"output":"yak/level","value":10,"for_seconds":30.000001}`},
		{"for a year", "set_level", `{"output":"yak/level","value":10,"for_seconds":31622400}`},
		{"a level as a switch", "switch_output", `{"output":"yak/level","on":true}`},
		{"a switch as a level: springbok/relay", "set_level", `{"output":"springbok/relay","value":1}`},
		{"alice's lease by its holder: hartebeest/relay alice", "switch_output", `{"output":"hartebeest/relay","on":false,"held_by":"token:alice"}`},
		{"alice's lease by a principal: hartebeest/relay alice", "switch_output", `{"output":"hartebeest/relay","on":false,"principal":"token:alice"}`},
		{"a text for a display", "show_text", `{"display":"okapi/text","text":"hello"}`},
		{"a picture", "capture_image", `{"camera":"okapi/camera"}`},
	}...) {
		all = append(all, f.calls(t, attack{name: c.what}, c.tool, c.args, "")...)
	}
	for _, key := range []string{"alice-1", "alice-1 ", "ALICE-1"} { // the call of hers, and other calls with her key
		for _, c := range reachable {
			a := attack{name: "alice's key, " + c.what, body: asked(c.tool, c.args, "", `"agentsite/idempotency-key":`+quoted(key)), headers: []string{"Mcp-Name", c.tool}}
			all = append(all, a, f.ofSession(a))
		}
		a := attack{name: "alice's very call: hartebeest/relay alice", body: strings.Replace(harness.KeyedMove("hartebeest/relay", key), `"for_seconds":60`, `"for_seconds":300`, 1), headers: []string{"Mcp-Name", "switch_output"}}
		all = append(all, a, f.ofSession(a))
	}
	// Calls that she may make are answered, with the parts that she may see.
	for _, tool := range []string{"list_points", "read_points", "site_status"} {
		all = append(all, f.calls(t, attack{name: "what there is", answered: true}, tool, `{}`, "")...)
	}
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"} {
		all = append(all, f.inForms(t, attack{name: method, answered: true}, method, "", "")...)
	}
	for _, argument := range []string{"device", "point"} {
		all = append(all, f.inForms(t, attack{name: "completing a " + argument, answered: true}, "completion/complete", "",
			`"ref":{"type":"ref/resource","uri":"agentsite:///{device}/{point}"},"argument":{"name":"`+argument+`","value":""}`)...)
	}
	return all
}

// handles are alice's: her session, her subscription, her requests.
func (f *field) handles(t *testing.T) (all []attack) {
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, verb := range []string{"POST", "GET", "DELETE", "PUT"} {
		for _, id := range []string{f.alices.session, strings.ToLower(f.alices.session), f.alices.session + " ", f.session + "," + f.alices.session, "*", "0"} {
			all = append(all, attack{name: verb + " in alice's session", verb: verb, body: list,
				headers: []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18", "Mcp-Method", "", "Mcp-Name", ""}})
		}
	}
	all = append(all, attack{name: "alice's session beside her own", body: list,
		headers: []string{"Mcp-Session-Id", f.session, "+Mcp-Session-Id", f.alices.session, "Mcp-Protocol-Version", "2025-06-18", "Mcp-Method", "", "Mcp-Name", ""}, answered: true})
	for _, uri := range []string{"agentsite:///hartebeest/relay", "agentsite:///okapi/humidity", "agentsite:///springbok/relay"} {
		all = append(all, f.inForms(t, attack{name: "a subscription to hartebeest, springbok and humidity", answered: true}, "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":[`+quoted(uri)+`]}`)...)
		all = append(all, f.inForms(t, attack{name: "an older subscription to hartebeest, springbok and humidity", answered: true}, "resources/subscribe", "", `"uri":`+quoted(uri))...)
		all = append(all, f.inForms(t, attack{name: "an end to a subscription to hartebeest, springbok and humidity", answered: true}, "resources/unsubscribe", "", `"uri":`+quoted(uri))...)
	}
	for id := range 8 {
		for _, session := range []string{"", f.session, f.alices.session} {
			all = append(all, attack{name: "cancelling what alice has running", answered: true, body: fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id),
				headers: []string{"Mcp-Method", "notifications/cancelled", "Mcp-Name", "", "Mcp-Session-Id", session}})
		}
	}
	return all
}
