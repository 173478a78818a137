package hosting

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/llm"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/outbox"
	"agentsite/node/state"
)

// TestDamagedFiles: a site with damaged files of accepted tools, imports, paused agents, spent
// budgets of models and messages that wait still hosts its agents, and does not replace those files. All agents are
// paused, and its models are sent nothing.
func TestDamagedFiles(t *testing.T) {
	f := state.Folder(t.TempDir())
	for _, name := range []string{state.AcceptedFile, state.ImportsFile, state.SharedFile, state.PausedFile, state.SpentFile} {
		if err := os.WriteFile(f.Path(name), []byte("{torn"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	waiting := make([]byte, outbox.MaxFile+1) // as a disk may return it
	if err := os.WriteFile(f.Path(state.OutboxFile), waiting, 0o600); err != nil {
		t.Fatal(err)
	}
	key := identity.New()
	store, err := access.NewStore(access.Options{
		Site: key.ID(), Build: time.Now(), SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil }, OnEnd: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	hub := node.NewHub(nil, forgetful{}, func(s string) string { return s })
	h, err := New(Options{Folder: f, Key: key, Version: "1", File: filepath.Join(string(f), "a.yaml"), Node: node.New(node.Parts{Hub: hub}), Hub: hub, Access: store})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("a.yaml", []byte("site: { name: x }\nagents: { child: { kind: mcp, command: [x], tools: [say] }, gpt: { kind: llm, model: { url: stand-in, name: x } } }\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(cfg); err != nil || len(h.List(t.Context())) != 2 {
		t.Errorf("%v, %+v", err, h.List(t.Context()))
	}
	for _, a := range h.List(t.Context()) {
		if a.State != agent.Paused {
			t.Errorf("%s %s, though it may have been paused", a.Name, a.State)
		}
	}
	world, err := openModels(Options{Folder: f, Access: store}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := llm.New(world)
	if got := m.Report(t.Context()); got.State != agent.Waiting {
		t.Errorf("%+v", got)
	}
	if err := h.Resume("child"); err != nil || h.List(t.Context())[0].State == agent.Paused || h.List(t.Context())[1].State != agent.Paused {
		t.Errorf("%v, %+v", err, h.List(t.Context()))
	}
	if paused, err := f.Paused(); err != nil || len(paused) != 1 || paused[0] != "gpt" {
		t.Errorf("paused are then %v, %v", paused, err)
	}
	if err := h.Imports.Remove("x"); err == nil {
		t.Error("damaged imports are replaced")
	}
	for _, name := range []string{state.AcceptedFile, state.ImportsFile, state.SharedFile, state.SpentFile} {
		if text, err := os.ReadFile(f.Path(name)); err != nil || string(text) != "{torn" {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}
