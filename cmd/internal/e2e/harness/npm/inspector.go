//go:build e2e

package npm

import (
	"net/http"
	"os/exec"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// ServeInspector runs a command that serves the MCP Inspector's page until the test ends. It returns the page, which
// asks for MCP_INSPECTOR_API_TOKEN=secret in its URL, and what the command says.
func ServeInspector(t testing.TB, cmd *exec.Cmd) (page string, said *harness.LogBuffer) {
	t.Helper()
	kept, port, said := harness.TempDir(t), harness.FreePort(t), new(harness.LogBuffer)
	cmd.Env = append(cmd.Environ(), "HOME="+kept, "MCP_STORAGE_DIR="+kept, "MCP_INSPECTOR_SECRET_STORE=file",
		"CLIENT_PORT="+port, "MCP_SANDBOX_PORT=0", "MCP_INSPECTOR_API_TOKEN=secret", "MCP_AUTO_OPEN_ENABLED=false")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	page = "http://127.0.0.1:" + port
	harness.WaitFor(t, 30*time.Second, "the Inspector listens", func() bool {
		res, err := http.Get(page)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return page, said
}
