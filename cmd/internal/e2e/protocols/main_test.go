//go:build e2e

// Package protocols asks the running program in the protocols that it speaks beside MCP, by
// clients of others.
package protocols

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// script runs a module of testdata in Node, where it may import what .ci/npm/package.json names,
// and returns what it printed. A module that fails fails the test.
func script(t *testing.T, limit time.Duration, name string, args ...string) string {
	t.Helper()
	modules := harness.Need(t, "npm's packages", os.Getenv("NPM_MODULES"))
	// Imports are resolved from where a module is.
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Need(t, "Node 22", harness.NodeProgram), append([]string{name}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// TestHTTP asks in plain HTTP.
func TestHTTP(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	t.Log(script(t, time.Minute, "http.mjs", r.URL, r.Token))
}

// TestSlash asks by the SDK of MCP, under the site's URL with a slash at its end and without.
func TestSlash(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	t.Log(script(t, time.Minute, "slash.mjs", r.URL, r.Token))
}
