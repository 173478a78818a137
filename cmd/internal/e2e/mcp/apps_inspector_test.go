//go:build e2e

package mcp

import (
	"fmt"
	"net/http"
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
	kept, port, said := harness.TempDir(t), harness.FreePort(t), new(harness.LogBuffer)
	cmd := exec.Command(harness.Need(t, "Node 22", harness.NodeProgram), npm.Path(npm.Inspector), "--server-url", a.site.URL+"/mcp", "--transport", "http",
		"--protocol-era", era, "--header", "Authorization: Bearer "+a.site.Token)
	cmd.Dir = kept
	cmd.Env = append(cmd.Environ(), "HOME="+kept, "MCP_STORAGE_DIR="+kept, "MCP_INSPECTOR_SECRET_STORE=file",
		"CLIENT_PORT="+port, "MCP_SANDBOX_PORT=0", "MCP_INSPECTOR_API_TOKEN=secret", "MCP_AUTO_OPEN_ENABLED=false")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	page := "http://127.0.0.1:" + port
	harness.WaitFor(t, 30*time.Second, "the Inspector listens", func() bool {
		res, err := http.Get(page)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
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
		shows(fmt.Sprintf("(e => e && (e.click(), true))([...document.querySelectorAll(%q)].find(e => e.textContent.startsWith(%q) && !e.disabled))", selector, text))
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
