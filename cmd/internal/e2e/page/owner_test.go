//go:build e2e

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/acts"
)

// script calls an owner's method from a script in the page's origin, with the page's own token.
const script = `window.call = async (url, method, params, name) => {
	const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "agentsite/unconfirmed": false };
	const r = await fetch(url, {
		method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: /^(owner|passkey)\//.test(method) ? params : { ...params, _meta: meta } }),
		headers: { "Content-Type": "application/json", Accept: "application/json", Authorization: "Bearer " + sessionStorage.getItem("token"),
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, ...name ? { "Mcp-Name": name } : {} },
	});
	return r.json();
}; true`

// said is an answer of a call.
type said struct {
	Result struct {
		Type       string `json:"resultType"`
		Structured struct {
			Value any `json:"value"`
		} `json:"structuredContent"`
		Requests []struct {
			Handle string `json:"handle"`
		} `json:"requests"`
	} `json:"result"`
	Error struct {
		Code int `json:"code"`
	} `json:"error"`
}

// TestScriptIsNoOwner: a script in the page's origin, with its session, can do no owner's act: neither by the
// owner's methods, which wait for the terminal, nor by moving what an owner has to confirm.
func TestScriptIsNoOwner(t *testing.T) {
	t.Parallel()
	site, ann, o, b := openShed(t, pump)
	b.is(0, "location.hash.indexOf('k=') < 0")
	const url = "/at/shed/mcp"
	run[bool](b, script)
	call := func(method, params, name string) said {
		t.Helper()
		return run[said](b, fmt.Sprintf("call(%q, %q, %s, %q)", url, method, params, name))
	}
	const on = `{name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}`
	if a := call("tools/call", on, "switch_output"); a.Result.Type != "input_required" {
		t.Errorf("what an owner confirms is moved by a script: %+v", a)
	}
	waiting := call("owner/requests", "{}", "").Result.Requests
	if len(waiting) != 1 {
		t.Fatalf("%+v wait", waiting)
	}
	handle := fmt.Sprintf("{name: %q}", waiting[0].Handle)
	// begin begins an owner's act in the page; its answer comes later.
	begin := func(method, params string) {
		run[bool](b, fmt.Sprintf("window.answer = call(%q, %q, %s), true", url, method, params))
	}
	begin("owner/approve", handle)
	if screen := o.asked(1); !strings.Contains(screen, "pump/relay") || !strings.Contains(screen, "switch_output") || !strings.Contains(screen, waiting[0].Handle) {
		t.Errorf("the terminal does not show what is approved:\n%s", screen)
	}
	if a := call("tools/call", on, "switch_output"); a.Result.Type != "input_required" {
		t.Errorf("before the person has answered: %+v", a)
	}
	o.typed("n\n")
	if a := run[said](b, "answer"); a.Error.Code != 403 {
		t.Errorf("after a no: %+v", a)
	}
	now, err := os.ReadFile(filepath.Join(site.Folder, "agentsite.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for n, act := range []string{"owner/reset", "owner/configure", "owner/token", "owner/remove-owner"} {
		begin(act, fmt.Sprintf(`{name: "x", text: "", digest: %q}`, acts.Digest(now)))
		o.asked(2 + n)
		o.typed("n\n")
		if a := run[said](b, "answer"); a.Error.Code != 403 {
			t.Errorf("%s after a no: %+v", act, a)
		}
	}
	if says, err := site.CLI(t, "read", "pump/relay"); err != nil || !strings.Contains(says, "off") {
		t.Errorf("%s %v", says, err)
	}
	begin("owner/approve", handle)
	o.asked(6)
	o.typed("\n")
	if a := run[said](b, "answer"); a.Error.Code != 0 {
		t.Errorf("after Enter: %+v", a)
	}
	if a := call("tools/call", on, "switch_output"); a.Result.Structured.Value != true {
		t.Errorf("what an owner confirmed: %+v", a)
	}
	if a := call("tools/call", `{name: "release_output", arguments: {output: "pump/relay"}}`, "release_output"); a.Result.Structured.Value != false {
		t.Errorf("back to safe: %+v", a)
	}
	if says, err := ann.CLI(t, "--site", "shed", "set", "pump/relay", "on"); err != nil {
		t.Errorf("the owner's own call: %s %v", says, err)
	}
}

// TestSitePageIsNoOwner: the page of a site itself has no owner's methods.
func TestSitePageIsNoOwner(t *testing.T) {
	t.Parallel()
	demo := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	b := newBrowser(t)
	b.expect("404")
	b.open(demo.Page)
	b.live()
	run[bool](b, script)
	for _, method := range []string{"owner/approve", "owner/journal", "owner/configuration", "claim/prove"} {
		if a := run[said](b, fmt.Sprintf(`call("/mcp", %q, {})`, method)); a.Error.Code != -32601 {
			t.Errorf("%s: %+v", method, a)
		}
	}
}
