//go:build e2e

package mcp

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/chromedp/chromedp"
)

// TestAppsInspector: the page of the MCP Inspector, a host of another maker, lists the tools that have the view, shows an
// output in it, and passes on its button, in both eras.
func TestAppsInspector(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) { showInInspector(t, era) })
	}
}

func showInInspector(t *testing.T, era string) {
	t.Parallel()
	a := startApps(t)
	a.expected = "ERR_NAME_NOT_RESOLVED" // its fonts are elsewhere
	cmd := exec.Command(harness.Need(t, "Node 22", harness.NodeProgram), npm.Path(npm.Inspector),
		"--server-url", a.site.URL+"/mcp", "--transport", "http", "--protocol-era", era,
		"--header", "Authorization: Bearer "+a.site.Token)
	cmd.Dir = harness.TempDir(t)
	page, said := npm.ServeInspector(t, cmd)
	defer func() {
		if t.Failed() {
			t.Logf("%v\n%s", a.inHost("location.href + document.body.innerText"), said)
			a.picture("-inspector-failed")
		}
	}()
	// shows waits until an expression is true in the Inspector's page.
	shows := func(expression string) {
		t.Helper()
		harness.WaitFor(t, 20*time.Second, expression, func() bool {
			ok, err := chromedp.Run(a.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
			return err == nil && ok
		})
	}
	press := func(selector, text string) {
		t.Helper()
		shows(fmt.Sprintf("(e => e && (e.click(), true))([...document.querySelectorAll(%q)].find(e => "+
			"e.textContent.startsWith(%q) && !e.disabled))", selector, text))
	}
	if err := chromedp.Do(a.ctx, chromedp.Navigate(page+"?MCP_INSPECTOR_API_TOKEN=secret")); err != nil {
		t.Fatal(err)
	}
	press(`input[aria-label^="Connect"]`, "")
	press("label", "Apps")
	a.call("switch_output", map[string]any{"output": "greenhouse/lamp", "on": true, "for_seconds": 300})
	press("button", "site_status") // which needs no arguments, and so is called
	a.is(20*time.Second, `document.querySelector("[data-output='greenhouse/lamp'][data-safe=false] button")`)
	a.picture("-inspector")
	a.inView(`document.querySelector("[data-output='greenhouse/lamp'] button").click(), true`)
	a.is(20*time.Second, `document.querySelector("[data-stopped=false]") && !document.querySelector("[data-output]")`)
	if v := a.value("greenhouse/lamp"); v != false {
		t.Errorf("the lamp is %v", v)
	}
}
