//go:build e2e

// Package npm runs the public programs that .ci/e2e installs from npm: suites, which need a token added, and clients.
package npm

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// Programs, for Run.
const (
	Suite     = "@modelcontextprotocol/conformance/dist/index.js"
	Inspector = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	Remote    = "mcp-remote/dist/proxy.js"
)

// Path returns the file of a program.
func Path(program string) string { return filepath.Join(os.Getenv("NPM_MODULES"), program) }

// Run runs a program and returns what it printed.
func Run(t *testing.T, most time.Duration, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	node := harness.Need(t, "Node 22", harness.NodeProgram)
	cmd := exec.CommandContext(ctx, node, append([]string{Path(program)}, args...)...)
	cmd.Dir = t.TempDir() // where the suites leave their results
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// Script runs a module of testdata in Node, where it may import what .ci/npm/package.json names,
// and returns what it printed. A module that fails fails the test.
func Script(t *testing.T, limit time.Duration, name string, args ...string) string {
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

// RunSuite runs the public suite's scenarios that need no fixtures against a site at an address, by way of StartProxy.
func RunSuite(t *testing.T, backend, token string, by http.RoundTripper) {
	t.Helper()
	url := StartProxy(t, backend, token, by) + "/mcp"
	for revision, scenarios := range map[string][]string{
		"2026-07-28": {"tools-list", "resources-list", "sep-2164-resource-not-found", "dns-rebinding-protection", "caching",
			"http-header-validation", "input-required-result-unsupported-methods"},
		"2025-11-25": {"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"},
	} {
		for _, s := range scenarios {
			t.Run(revision+"/"+s, func(t *testing.T) {
				out, err := Run(t, time.Minute, Suite, "server", "--url", url, "--spec-version", revision, "--scenario", s)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			})
		}
	}
}

// StartProxy serves a site at an address of its own until the test ends, and adds the token, for tools that cannot send
// one. backend has no path, and is reached by a transport, nil for the usual one; the address returned has no path,
// either. It replaces its own address in Host and Origin by the site's; a foreign name passes unchanged, so that the
// site's check of names is still tested.
func StartProxy(t testing.TB, backend, token string, by http.RoundTripper) string {
	t.Helper()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	var own string
	proxy := &httputil.ReverseProxy{
		Transport:     by,
		FlushInterval: -1, // streams
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.Host = r.In.Host; r.In.Host == own {
				r.Out.Host = to.Host
			}
			if r.In.Header.Get("Origin") == "http://"+own {
				r.Out.Header.Set("Origin", backend)
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A site may begin to answer before the proxy has seen the end of the body. Without full
		// duplex the body, and the answer with it, would then be cut off.
		http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}))
	own = s.Listener.Addr().String()
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}
