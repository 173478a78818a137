package site

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"agentsite/node/state"
)

// TestInterruptedStart: the outputs of the plan of before go to safe before another takes
// its place, though the site is told to end meanwhile.
func TestInterruptedStart(t *testing.T) {
	f := state.Folder(t.TempDir())
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	if err := os.WriteFile(f.Path(state.PlanFile), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "safe")
	t.Setenv("SAFE_MARK", mark)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := takeOverGuard(ctx, f, []byte("after"))
	plan, _ := os.ReadFile(f.Path(state.PlanFile))
	if _, ran := os.Stat(mark); ran != nil && string(plan) != "before" {
		t.Errorf("the plan is %q, and nobody drove the outputs of before to safe: %v", plan, err)
	}
}
