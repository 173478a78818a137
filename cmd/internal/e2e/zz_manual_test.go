//go:build conformance

package e2e

import (
	"os"
	"os/exec"
	"testing"
)

func TestManual(t *testing.T) {
	url := Proxy(t, serve(t, "x"), "x") + "/mcp"
	for range 12 {
		c := exec.Command("bash", "-c", "$CONFORMANCE server --url "+url+" --spec-version 2025-11-25 --scenario elicitation-sep1034-defaults")
		c.Env = os.Environ()
		out, err := c.CombinedOutput()
		if err != nil {
			t.Logf("%s %v", out, err)
		} else { t.Log("fine") }
	}
}
