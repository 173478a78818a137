package site_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/site"
	"agentsite/cmd/internal/sitetest"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/node/state"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	sitetest.RunGuard()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// get asks a site with its token, and returns the status and the body.
func get(t *testing.T, s *sitetest.Site, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "switch_output")
	with := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := with.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestRun: a site answers on its routes, moves an output, and at its end leaves the output
// at its safe value and the folder free.
func TestRun(t *testing.T) {
	outputs := filepath.Join(t.TempDir(), "outputs")
	s := sitetest.Start(t, "site: { name: shed }\ndevices:\n  pump: { driver: sim, model: relay, min_off: 0s, outputs_file: "+outputs+" }\n")
	isOn := func() bool {
		text, err := os.ReadFile(outputs)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), " on ")
	}
	if s.Name != "shed" || isOn() {
		t.Error(s.Started)
	}
	if status, body := get(t, s, "GET", "/healthz", ""); status != 200 || body != "ok\n" {
		t.Error(status, body)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"switch_output","arguments":{"output":"pump/relay","on":true,"for_seconds":60},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if status, body := get(t, s, "POST", "/mcp", call); status != 200 || !isOn() {
		t.Error(status, body)
	}
	if status, body := get(t, s, "GET", "/metrics", ""); status != 200 || !strings.Contains(body, "agentsite_outputs_away_from_safe 1\n") {
		t.Error(status, body)
	}
	if err := s.End(); err != nil || isOn() {
		t.Errorf("after its end: %v, on: %v", err, isOn())
	}
	past := history.New(nil)
	if err := past.Open(s.Folder.Path(state.HistoryFolder), history.Options{}); err != nil {
		t.Fatal(err)
	}
	holder := ""
	past.Changes("pump/relay", time.Now().Add(-time.Hour), time.Now(), func(c device.Change) bool {
		if c.Value.Bool() {
			holder = c.Holder
		}
		return true
	})
	if holder != "token" {
		t.Errorf("by its history, the output was held by %q", holder)
	}
	unlock, err := s.Folder.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestRunFails: a start that fails leaves nothing open.
func TestRunFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	t.Setenv("RUNTIME_DIRECTORY", dir)
	folder := state.Folder(filepath.Join(dir, "data"))
	err = site.Run(t.Context(), site.Options{Folder: folder, Listen: config.Listen{HTTP: taken.Addr().String()}, OnStart: func(site.Started) { t.Error("it can be called") }})
	if err == nil {
		t.Error("a taken port is no error")
	}
	unlock, err := folder.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestEndedBefore: a site that is ended before it begins is no failure.
func TestEndedBefore(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := site.Run(ctx, site.Options{Folder: state.Folder(t.TempDir()), Listen: config.Listen{HTTP: "127.0.0.1:0"}}); err != nil {
		t.Error(err)
	}
}
