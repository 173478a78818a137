package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestManual(t *testing.T) {
	tok, _ := os.ReadFile(os.Getenv("TOKENFILE"))
	url := Proxy(t, "http://127.0.0.1:18765", strings.TrimSpace(string(tok))) + "/mcp"
	for _, set := range []string{"2025-11-25", "2026-07-28"} {
		c := exec.Command("bash", "-c", "$CONFORMANCE server --url "+url+" --requirements "+set+" | sed -n '/SUMMARY/,$p'; exit ${PIPESTATUS[0]}")
		c.Env = os.Environ()
		out, err := c.CombinedOutput()
		t.Logf("%s %v", out, err)
	}
}
