package homeassistant

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/cmd/internal/site"
	"agentsite/node/state"
	"agentsite/transport/supervisor"
	"agentsite/transport/supervisor/supervisortest"
)

// container returns the options of an app whose container has these settings, and the Supervisor that it calls.
func container(t *testing.T, options string) (Options, *supervisortest.Supervisor) {
	s := &supervisortest.Supervisor{Token: "x1", Discovery: []string{"mcp"}}
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	dir := t.TempDir()
	o := Options{
		Data: state.Folder(filepath.Join(dir, "data", "agentsite")), Config: filepath.Join(dir, "agentsite.yaml"),
		Settings: filepath.Join(dir, "options.json"), Supervisor: at.URL,
	}
	if options != "" {
		if err := os.WriteFile(o.Settings, []byte(options), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SUPERVISOR_TOKEN", "x1")
	return o, s
}

const owner = "did:key:z6MkgmAtX151oHPKyCvYR1WVnNBspf3ZAzLVanoHvAExVMFo"

// TestOpen: an app has a configuration of its own that the site takes, with or without the Supervisor, and the user's
// options. The token is not for the programs that the site runs.
func TestOpen(t *testing.T) {
	for _, fails := range []int{0, 502} {
		o, s := container(t, `{"owner":"`+owner+`","log_level":"warn"}`)
		s.SetFailing(fails)
		a, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if a.Site.Owner != owner || a.Level.String() != "WARN" || a.Site.Listen != supervisor.Listen || len(a.Did) == 0 {
			t.Errorf("%+v", a)
		}
		if os.Getenv("SUPERVISOR_TOKEN") != "" {
			t.Error("the token stays in the environment")
		}
		cfg, _, err := site.CheckBoard(o.Config)
		if err != nil || len(cfg.Agents) != 2 || len(cfg.HTTP.Hosts) != 1 || cfg.HTTP.Hosts[0] != "homeassistant.local" || cfg.Discovery.MDNS {
			t.Fatalf("%+v, %v", cfg, err)
		}
		if doubts := site.Doubts(cfg, o.Config); len(doubts) > 0 {
			t.Error(doubts)
		}
		// What the user writes stays.
		own := "site: { name: own }\n"
		if err := os.WriteFile(o.Config, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("SUPERVISOR_TOKEN", "x1")
		if _, err := Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(o.Config); string(text) != own {
			t.Errorf("%s", text)
		}
	}
}

// TestRefused: what the Supervisor would not have passed is refused before the site begins.
func TestRefused(t *testing.T) {
	for _, options := range []string{"no", `{"owner":"did:key:z6Mk"}`, `{"owner":1}`, `{"log_level":"loud"}`} {
		o, _ := container(t, options)
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("%s is taken", options)
		}
	}
	o, _ := container(t, "")
	t.Setenv("SUPERVISOR_TOKEN", "")
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "SUPERVISOR_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
}
