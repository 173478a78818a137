//go:build e2e

package access

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	ownerapi "agentsite/transport/owner"
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

// tokens returns attacks with invalid tokens, and with her own token where no token is accepted.
func (f *field) tokens(t *testing.T, elsewhere *harness.Site) (all []attack) {
	others, _ := elsewhere.AddToken(t, "mallory", "read *, set *, stop")
	revoked, _ := f.AddToken(t, "gone", "read *, set *, stop")
	if out, err := f.CLI(t, "token", "revoke", "gone"); err != nil {
		t.Fatal(out, err)
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for what, headers := range map[string][]string{
		"another site's token":       bearer(others),
		"another site's own token":   bearer(elsewhere.Token),
		"a token that was revoked":   bearer(revoked),
		"a token that ended":         bearer(f.ExpiredToken(t)),
		"the name of alice's token":  bearer("alice"),
		"alice as a principal":       bearer("token:alice"),
		"the owner's name":           bearer("local"),
		"the agents' name":           bearer("local-agent"),
		"her token and alice's name": bearer(f.mallory + ":alice"),
		"her token, less a digit":    bearer(f.mallory[1:]),
		"her token, and a digit":     bearer(f.mallory + "0"),
		"a hash of nothing":          bearer("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
		"another scheme":             {"Authorization", "Basic " + f.mallory},
		"two tokens":                 append(bearer(f.mallory), "+Authorization", "Bearer "+f.mallory),
		"a cookie":                   {"Authorization", "", "Cookie", "token=" + f.mallory + "; Authorization=Bearer " + f.mallory},
		"a proxy's header":           {"Authorization", "", "Proxy-Authorization", "Bearer " + f.mallory},
		"a key in a header":          {"Authorization", "", "X-Api-Key", f.mallory},
	} {
		for _, c := range reachable {
			all = append(all, attack{name: what + ", " + c.what, body: harness.ToolCall(c.tool, c.args), headers: append(headers, "Mcp-Name", c.tool)})
		}
	}
	none := []string{"Authorization", ""}
	for _, c := range reachable {
		for _, at := range []string{"/mcp?access_token=", "/mcp?token=", "/mcp?Authorization=Bearer%20"} {
			all = append(all, attack{name: "her token in the URL, " + c.what, path: at + f.mallory, body: harness.ToolCall(c.tool, c.args), headers: append(none, "Mcp-Name", c.tool)})
		}
		all = append(all, attack{name: "her token in the body, " + c.what, headers: append(none, "Mcp-Name", c.tool),
			body: asked(c.tool, c.args, `"access_token":"`+f.mallory+`"`, `"authorization":"Bearer `+f.mallory+`"`)})
	}
	return all
}

// grants returns attacks that ask the owner for a token of a grant. A grant that is not an owner's
// is refused, and a delegation that claims more than its parent counts as its parent.
func (f *field) grants(t *testing.T) (all []attack) {
	owner, err := peer.Dial(peer.Target{Folder: state.Folder(f.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	own, err := peer.OwnerIdentity()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(own.File)
	if err != nil {
		t.Fatal(err)
	}
	ownerKey, err := identity.ParsePEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	here, err := state.Folder(f.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	thisSite, err := identity.Parse(here.DID)
	if err != nil {
		t.Fatal(err)
	}
	mallory, another := identity.New(), identity.New().ID()
	grants := granting{t}
	issue, pass := grants.issue, grants.pass
	block := func(to, node identity.ID, words string) access.Block { return grants.block(to, node, words, time.Hour) }
	const everything = "read *, set *, stop"
	ended := grants.block(thisSite, thisSite, everything, -time.Minute)
	hers := issue(ownerKey, block(mallory.ID(), thisSite, "read okapi/temperature"))
	changed := append([]byte(nil), issue(ownerKey, block(thisSite, thisSite, everything)).Bytes()...)
	changed[len(changed)/2] ^= 1
	const nobodys = "" // it makes no token
	for i, g := range []struct {
		name string
		text []byte
		says string
	}{
		{"a grant of her own", issue(mallory, block(thisSite, thisSite, everything)).Bytes(), nobodys},
		{"a grant for another site", issue(ownerKey, block(thisSite, another, everything)).Bytes(), nobodys},
		{"a grant for somebody else", issue(ownerKey, block(another, thisSite, everything)).Bytes(), nobodys},
		{"her grant, as it is", hers.Bytes(), nobodys},
		{"a grant that was changed", changed, nobodys},
		{"half a grant", hers.Bytes()[:40], nobodys},
		{"no grant", nil, nobodys},
		{"a grant for another site, passed on", pass(issue(ownerKey, block(mallory.ID(), another, everything)), mallory, block(thisSite, thisSite, everything)).Bytes(), nobodys},
		{"a grant that ended", issue(ownerKey, ended).Bytes(), "made"},
		{"her grant, passed on with everything in it", pass(hers, mallory, block(thisSite, thisSite, everything)).Bytes(), "made"},
	} {
		text, err := owner.CallMethod(t.Context(), string(ownerapi.TokenMethod), ownerapi.NewToken{Name: fmt.Sprint("deputy", i), Grant: g.text, Until: time.Now().Add(time.Hour)})
		if (err == nil) != (g.says == "made") {
			t.Errorf("%s: %s %v", g.name, text, err)
		}
		token := cut(string(text), `"token":"`, `"`)
		if token == "" {
			token = strings.Repeat("0", 64)
		}
		for _, c := range reachable {
			all = append(all, attack{name: g.name + ", " + c.what, body: harness.ToolCall(c.tool, c.args), headers: []string{"Authorization", "Bearer " + token, "Mcp-Name", c.tool}})
		}
		for _, tool := range []string{"list_points", "read_points", "site_status"} {
			all = append(all, attack{name: g.name, body: harness.ToolCall(tool, `{}`), headers: []string{"Authorization", "Bearer " + token, "Mcp-Name", tool}, answered: true})
		}
	}
	return all
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
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		all = append(all, attack{name: fmt.Sprint("a level of ", n), body: withNumber(t, harness.ToolCall("set_level", `{"output":"yak/level","value":12345.5}`), n),
			headers: []string{"Mcp-Name", "set_level", "Content-Type", "application/cbor", "Accept", "application/cbor"}})
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

// names are those of tools, points and resources, written in other ways.
func (f *field) names(t *testing.T) (all []attack) {
	const hidden, output = "okapi/humidity", "springbok/relay"
	ways := func(name string) []string {
		device, point, _ := strings.Cut(name, "/")
		return []string{
			name, strings.ToUpper(name), strings.ToTitle(name[:1]) + name[1:], name + " ", " " + name, "\t" + name, name + "\n", name + "\x00", "\x00" + name,
			name + "\u200b", "\ufeff" + name, device + "\uff0f" + point, device + "\u2215" + point, device + "//" + point, device + "/./" + point,
			"./" + name, "/" + name, name + "/", "okapi/../" + name, "okapi/temperature/../../" + name, device + `\` + point, device + "%2f" + point, device + "." + point,
			strings.Replace(name, "a", "\u0430", 1), strings.Replace(name, "u", "u\u0301", 1), strings.Replace(name, "i", "\u0131", 1), name + "?", name + "#temperature",
			"okapi/temperature," + name, "okapi/temperature " + name, "*", "*/*", device, device + "/*", device + "/", "../" + name, "${" + name + "}", "",
		}
	}
	for _, way := range ways(hidden) {
		a := attack{name: "the point okapi/humidity as " + quoted(way)}
		all = append(all, f.calls(t, a, "read_points", `{"points":[`+quoted(way)+`]}`, "")...)
		all = append(all, f.calls(t, a, "read_history", `{"point":`+quoted(way)+`}`, "")...)
		all = append(all, f.inForms(t, a, "resources/read", "agentsite:///"+way, `"uri":`+quoted("agentsite:///"+way))...)
	}
	for _, way := range ways(output) {
		a := attack{name: "the output springbok/relay as " + quoted(way)}
		all = append(all, f.calls(t, a, "switch_output", `{"output":`+quoted(way)+`,"on":true}`, "")...)
	}
	for _, uri := range []string{
		"AGENTSITE:///okapi/humidity", "agentsite://okapi/humidity", "agentsite://localhost/okapi/humidity", "agentsite:okapi/humidity", "okapi/humidity",
		"file:///etc/passwd", "http://127.0.0.1/metrics", "agentsite:///okapi/temperature?point=humidity", "agentsite:///{device}/{point}", "agentsite:///",
	} {
		all = append(all, f.inForms(t, attack{name: "the resource okapi/humidity as " + uri}, "resources/read", uri, `"uri":`+quoted(uri))...)
	}
	for _, tool := range []string{
		"Switch_Output", "SWITCH_OUTPUT", "switch_output ", " switch_output", "switch-output", "switchOutput", "switch_output\x00", "switch_output\u200b",
		"\uff53witch_output", "sw\u0456tch_output", "things/switch_output", "switch_output/../read_points", "read_points;switch_output", "owner/reset", "tools/call", "",
	} {
		all = append(all, f.calls(t, attack{name: "the tool switch_output as " + quoted(tool)}, tool, `{"output":"springbok/relay","on":true}`, "")...)
	}
	for _, method := range []string{"Tools/call", "TOOLS/CALL", "tools/call ", "tools//call", "tools.call", "/tools/call", "tools/call\u200b", "tools\uff0fcall", "../owner/reset", "Owner/reset", ""} {
		all = append(all, f.inForms(t, attack{name: "the method tools/call as " + quoted(method)}, method, "switch_output", `"name":"switch_output","arguments":{"output":"springbok/relay","on":true}`)...)
	}
	for _, args := range []string{
		`{"points":[["okapi/humidity"]]}`, `{"points":{"0":"okapi/humidity"}}`, `{"points":"okapi/humidity"}`, `{"Points":["okapi/humidity"]}`,
		`{"points":["okapi/temperature"],"point":"okapi/humidity"}`, `{"point":"okapi/humidity"}`, `["okapi/humidity"]`, `"okapi/humidity"`, `{"points":[null,"okapi/humidity"]}`,
	} {
		all = append(all, f.calls(t, attack{name: "the arguments okapi/humidity"}, "read_points", args, "")...)
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

// approvals are tries to have the gate without the owner's word.
func (f *field) approvals(t *testing.T) (all []attack) {
	_, answer := f.send(t, attack{body: harness.ToolCall("switch_output", gateOn), headers: []string{"Mcp-Name", "switch_output"}})
	state, handle := cut(answer, `"requestState":"`, `"`), cut(answer, "agentsite approve ", ";")
	if state == "" || handle == "" {
		t.Fatal(answer)
	}
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	const yes = `"inputResponses":{"approval":{"action":"accept","content":{"approve":true,"approved":true,"owner":true}}}`
	for what, state := range map[string]string{
		"her own state": state, "alice's state": f.alices.state, "a state that was changed": string(flipped), "half a state": state[:len(state)/2], "two states": state + f.alices.state,
		"her handle": handle, "alice's handle": f.alices.handle, "a state of her own making": strings.Repeat("A", len(state)), "a word": "approved",
	} {
		for _, answers := range []string{"", "," + yes} {
			for _, args := range []string{gateOn, `{"output":"gate/relay","on":true,"for_seconds":600}`} {
				all = append(all, f.calls(t, attack{name: what + answers}, "switch_output", args, `"requestState":`+quoted(state)+answers)...)
			}
		}
		all = append(all, f.calls(t, attack{name: what + " for another output: springbok/relay"}, "switch_output", `{"output":"springbok/relay","on":true}`, `"requestState":`+quoted(state))...)
		all = append(all, f.calls(t, attack{name: what + " to read okapi/humidity"}, "read_points", `{"points":["okapi/humidity"]}`, `"requestState":`+quoted(state))...)
	}
	for _, meta := range []string{`"agentsite/approval":"approved"`, `"agentsite/approved":true`, `"agentsite/approval":` + quoted(handle), `"owner/approve":` + quoted(handle), `"owner":true`} {
		all = append(all, attack{name: "a yes in _meta", body: asked("switch_output", gateOn, yes, meta), headers: []string{"Mcp-Name", "switch_output"}})
	}
	for _, args := range []string{`{"output":"gate/relay","on":true,"confirm":"owner"}`, `{"output":"gate/relay","on":true,"approved":true}`} {
		all = append(all, f.calls(t, attack{name: "a yes as an argument"}, "switch_output", args, "")...)
	}
	for _, method := range []string{"owner/approve", "owner/deny"} {
		for _, handle := range []string{handle, f.alices.handle} {
			all = append(all, f.inForms(t, attack{name: method + " of a request"}, method, handle, `"name":`+quoted(handle))...)
		}
	}
	return all
}

// ownersMethods are all that there are, with words that would matter, and in disguise.
func (f *field) ownersMethods(t *testing.T) (all []attack) {
	for _, method := range f.owners {
		for _, name := range []string{"", "alice", "hartebeest/relay", "mallory"} {
			all = append(all, f.inForms(t, attack{name: method + " alice hartebeest"}, method, name, `"name":`+quoted(name))...)
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"mallory"}}`, method)
		for what, headers := range map[string][]string{
			"as a tool's call":      {},
			"as the local owner":    {"X-Local", "owner", "X-Forwarded-User", "local", "X-Remote-User", "root", "Mcp-Principal", "local"},
			"from this machine":     {"X-Forwarded-For", "127.0.0.1", "X-Real-Ip", "127.0.0.1", "Forwarded", "for=127.0.0.1"},
			"without the headers":   {"Mcp-Method", "", "Mcp-Name", ""},
			"in alice's session":    {"Mcp-Session-Id", f.alices.session, "Mcp-Protocol-Version", "2025-06-18", "Mcp-Method", "", "Mcp-Name", ""},
			"with no token at all":  {"Authorization", ""},
			"by the agents' socket": {"X-Agentsite-Local", "agent"},
		} {
			all = append(all, attack{name: method + " " + what, body: body, headers: headers})
		}
	}
	return all
}
