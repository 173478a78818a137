//go:build e2e

package public

import (
	"fmt"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/chromedp/chromedp"
)

// TestInspectorPage: the page of the MCP Inspector signs in, lists and calls, also what the owner adds, asks for what
// the owner takes away meanwhile, and signs in again after its end.
func TestInspectorPage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	page, said := npm.ServeInspector(t,
		p.node(t, npm.Path(npm.Inspector), "--server-url", p.url, "--transport", "http", "--protocol-era", "modern"))

	// The pages that Chromium keeps for its back button keep their streams, which are all that it has for a host after
	// three sign-ins. The Inspector's fonts are elsewhere.
	w := openWindow(t, p.Log, "local", chromedp.Flag("disable-back-forward-cache", true),
		chromedp.Flag("host-resolver-rules", "MAP * 127.0.0.1"))
	defer func() {
		if t.Failed() {
			t.Logf("%s\n%s\n%s", w.evaluate("location.href + document.body.innerText"), said, p.Log)
		}
	}()
	// first is the first element with a selector whose text begins so and which may be used.
	first := func(selector, text string) string {
		return fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.startsWith(%q) && !e.disabled)",
			selector, text)
	}
	press := func(selector, text string) {
		t.Helper()
		w.shows(fmt.Sprintf("(e => e && (e.click(), true))(%s)", first(selector, text)))
	}
	// call calls a tool with arguments, "" for none. The page may have kept them while its user signed in, or not.
	call := func(tool, args string) {
		t.Helper()
		press("button", tool)
		if args != "" {
			w.shows(`document.querySelector(".ace_editor")?.env ?? void ` + first("label", "Edit as JSON") + `?.click()`)
			w.evaluate(fmt.Sprintf(`document.querySelector(".ace_editor").env.editor.setValue(%q)`, args))
		}
		press("button", "Execute")
	}
	answers := func(text string) {
		t.Helper()
		w.shows(fmt.Sprintf("document.body.innerText.includes(%q)", text))
	}
	consents := func(may string) {
		t.Helper()
		p.owner(t, "approve", w.code(), "--may", may)
	}
	w.open(page + "?MCP_INSPECTOR_API_TOKEN=secret")
	press(`input[aria-label^="Connect"]`, "")
	consents("read *")
	press("label", "Tools")
	call("list_points", "")
	answers(`"box/relay"`)

	set := "read *, set box max 10s"
	p.owner(t, "token", "change", "mcp-inspector", set)
	press("button", "Refresh") // it is told of the change, and leaves the rest to its user
	w.shows(first("button", "switch_output"))
	p.owner(t, "token", "change", "mcp-inspector", "read *")
	turnOn := `{"output": "box/relay", "on": true, "for_seconds": 1}`
	call("switch_output", turnOn)
	press("button", "Authorize")
	consents(set)
	call("switch_output", turnOn)
	answers(harness.MovedField)

	p.owner(t, "revoke", "mcp-inspector")
	call("site_status", "")
	consents("read *")
	call("site_status", "")
	answers(`"uptime_seconds"`)
}
