//go:build e2e

package access

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// asked is a call with more in its parameters and in its _meta.
func asked(tool, args, params, meta string) string {
	body := harness.ToolCall(tool, args)
	if params != "" {
		body = strings.Replace(body, `"_meta":{`, params+`,"_meta":{`, 1)
	}
	if meta != "" {
		body = strings.Replace(body, `"_meta":{`, `"_meta":{`+meta+`,`, 1)
	}
	return body
}

// TestBadMoves sends moves without the owner's approval or another's lease, through HTTP. Each is
// refused, none moves anything, and the journal counts them. What an argument can be is tested in
// agents/tools and node.
func TestBadMoves(t *testing.T) {
	dir := harness.TempDir(t)
	r := harness.Start(t, "site: { name: bad }\ndevices:\n"+
		"  a: { driver: sim, model: relay, min_off: 0s, outputs_file: "+dir+"/a }\n"+
		"  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner, outputs_file: "+dir+"/gate }\n", harness.Need(t, "the program", harness.Program))
	on := func(output, more string) string { return fmt.Sprintf(`{"output":%q,"on":true%s}`, output, more) }
	post := func(t *testing.T, body, tool string, more ...string) string {
		t.Helper()
		_, answer := r.Post(t, body, append([]string{"Mcp-Name", tool}, more...)...)
		return answer
	}
	// a is held by another principal, so that its key and its lease are there to be forged.
	harness.WaitFor(t, time.Minute, "a moves", func() bool {
		_, err := r.CLI(t, "set", "a/relay", "on", "--for", "2m", "--key", "owners")
		return err == nil
	})
	_, held := harness.ReadWitness(filepath.Join(dir, "a"))
	_, atRest := harness.ReadWitness(filepath.Join(dir, "gate"))

	waiting := post(t, harness.ToolCall("switch_output", on("gate/relay", `,"for_seconds":9`)), "switch_output")
	var need struct {
		Result struct {
			Type  string `json:"resultType"`
			State string `json:"requestState"`
			Meta  struct {
				Approval string `json:"agentsite/approval"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(waiting), &need); err != nil || need.Result.Type != "input_required" || need.Result.State == "" || !strings.Contains(need.Result.Meta.Approval, "agentsite approve ") {
		t.Fatalf("%v %s", err, waiting)
	}
	_, handle, _ := strings.Cut(need.Result.Meta.Approval, "agentsite approve ")
	handle, _, _ = strings.Cut(handle, " ")
	state := func(s string) string { return fmt.Sprintf(`"requestState":%q`, s) }
	const yes = `"inputResponses":{"approval":{"action":"accept","content":{"approve":true,"approved":true,"owner":true}}}`
	gate := on("gate/relay", `,"for_seconds":9`)
	flipped := []byte(need.Result.State)
	flipped[len(flipped)/2] ^= 1

	for name, c := range map[string]struct{ body, tool, says string }{
		"for ages":                   {harness.ToolCall("switch_output", on("a/relay", `,"for_seconds":1e308`)), "switch_output", "for_seconds is 1e+308"},
		"another's lease":            {harness.ToolCall("switch_output", on("a/relay", "")), "switch_output", "a/relay is held by local"},
		"another's key":              {harness.KeyedMove("a/relay", "owners"), "switch_output", "a/relay is held by local"},
		"its own yes":                {asked("switch_output", gate, state(need.Result.State)+","+yes, ""), "switch_output", `"resultType":"input_required"`},
		"its own yes, without state": {asked("switch_output", gate, yes, ""), "switch_output", `"resultType":"input_required"`},
		"a yes in _meta":             {asked("switch_output", gate, "", `"agentsite/approval":"approved","agentsite/approved":true,"owner/approve":"`+handle+`"`), "switch_output", `"resultType":"input_required"`},
		"a yes as an argument":       {harness.ToolCall("switch_output", on("gate/relay", `,"confirm":"owner"`)), "switch_output", "confirm: "},
		"the handle as the state":    {asked("switch_output", gate, state(handle), ""), "switch_output", "for this request"},
		"a state that was changed":   {asked("switch_output", gate, state(string(flipped)), ""), "switch_output", "for this request"},
		"a state for another length": {asked("switch_output", on("gate/relay", `,"for_seconds":600`), state(need.Result.State), ""), "switch_output", "for this request"},
		"a state for another output": {asked("switch_output", on("a/relay", `,"for_seconds":9`), state(need.Result.State), ""), "switch_output", "for this request"},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := post(t, c.body, c.tool); !strings.Contains(answer, c.says) || strings.Contains(answer, harness.MovedField) {
				t.Errorf("%s\nwant %q", answer, c.says)
			}
		})
	}
	if v, at := harness.ReadWitness(filepath.Join(dir, "a")); v != "on" || at != held {
		t.Errorf("a is %s since %v", v, at)
	}
	if v, at := harness.ReadWitness(filepath.Join(dir, "gate")); v != "off" || at != atRest {
		t.Errorf("the gate is %s since %v", v, at)
	}
	if answer := post(t, harness.ToolCall("site_status", "{}"), "site_status"); strings.Count(answer, `"held_by"`) != 1 {
		t.Errorf("something moved: %s", answer)
	}

	// After the owner's approval the very call is made once.
	if out, err := r.CLI(t, "approve", handle); err != nil {
		t.Fatal(out, err)
	}
	if answer := post(t, asked("switch_output", on("gate/relay", `,"for_seconds":10`), state(need.Result.State), ""), "switch_output"); strings.Contains(answer, harness.MovedField) {
		t.Errorf("approved, and altered: %s", answer)
	}
	if answer := post(t, asked("switch_output", gate, state(need.Result.State), ""), "switch_output"); !strings.Contains(answer, harness.MovedField) {
		t.Errorf("approved: %s", answer)
	}
	if v, _ := harness.ReadWitness(filepath.Join(dir, "gate")); v != "on" {
		t.Error("the gate is not on")
	}
	post(t, harness.ToolCall("release_output", `{"output":"gate/relay"}`), "release_output")
	if answer := post(t, asked("switch_output", gate, state(need.Result.State), ""), "switch_output"); strings.Contains(answer, harness.MovedField) || !strings.Contains(answer, `"agentsite/fault":"expired"`) {
		t.Errorf("an approval is replayed: %s", answer)
	}
	if v, _ := harness.ReadWitness(filepath.Join(dir, "gate")); v != "off" {
		t.Error("the gate is on again")
	}

	if log := r.Log.String(); strings.Contains(log, "panic") {
		t.Error(log)
	}
	r.Stop(t) // which writes what was counted
	out, err := r.CLI(t, "journal", "--json", "--limit", "1000")
	if err != nil || !strings.Contains(out, `"who":"token","tool":"switch_output","outcome":"refused","says":"invalid","count":`) || !strings.Contains(out, `"outcome":"refused","says":"busy","count":`) {
		t.Errorf("%v\n%s", err, out)
	}
	if n := strings.Count(out, `"value":true,"safe":false`); n != 2 {
		t.Errorf("%d moves are written down, want 2\n%s", n, out)
	}
}
