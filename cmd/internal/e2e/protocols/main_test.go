//go:build e2e

// Package protocols asks the running program in the protocols that it speaks beside MCP, by
// clients of others.
package protocols

import (
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"
)

// script runs a module of testdata in Node.
var script = npm.Script

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
