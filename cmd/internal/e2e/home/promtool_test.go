//go:build e2e

package home

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestPrometheus: Prometheus' own tool takes the metrics without a warning, and an export of the history with all
// its samples.
func TestPrometheus(t *testing.T) {
	promtool, _ := exec.LookPath("promtool")
	harness.Need(t, "promtool", promtool)
	r := harness.Start(t, "", harness.Program)
	tool := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.Command(promtool, args...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("promtool %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out, err := r.CLI(t, "set", "greenhouse/heater", "on", "--for", "1s"); err != nil {
		t.Fatal(out, err)
	}
	var export string
	harness.WaitFor(t, 30*time.Second, "the history has readings and the switch", func() bool {
		var err error
		export, err = r.CLI(t, "history", "*", "--since", "1h", "--step", "1s", "--openmetrics")
		return err == nil && strings.Count(export, `{point="greenhouse/temperature",unit="Cel"}`) > 1 && strings.Count(export, `{point="greenhouse/heater"}`) > 2
	})
	dir := t.TempDir()
	file, blocks := filepath.Join(dir, "export"), filepath.Join(dir, "blocks")
	if err := os.WriteFile(file, []byte(export), 0o600); err != nil {
		t.Fatal(err)
	}
	tool("", "tsdb", "create-blocks-from", "openmetrics", file, blocks)
	if err := os.Mkdir(filepath.Join(blocks, "wal"), 0o700); err != nil { // or its dump finds nothing
		t.Fatal(err)
	}
	samples := regexp.MustCompile(`(?m)^agentsite_reading\{.*\} .* .*$`).FindAllString(export, -1)
	dump := strings.TrimSpace(tool("", "tsdb", "dump", blocks))
	if got := strings.Count(dump, "\n") + 1; got != len(samples) {
		t.Errorf("%d samples became %d\n%s\n%s", len(samples), got, export, dump)
	}
	t.Logf("%d samples", len(samples))
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp.Status, err)
	}
	if warnings := tool(string(metrics), "check", "metrics"); warnings != "" {
		t.Error(warnings)
	}
}
