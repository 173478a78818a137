package devices

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// testFiles are the files of a data folder, without locks and atomic writes.
func testFiles(folder string) GuardFiles {
	return GuardFiles{
		Folder: folder, Plan: filepath.Join(folder, "outputs.yaml"),
		Write:    func(path string, text []byte) error { return os.WriteFile(path, text, 0o600) },
		Read:     func() ([]byte, error) { return os.ReadFile(filepath.Join(folder, "outputs.yaml")) },
		OpenLock: func() (*os.File, error) { return os.Create(filepath.Join(folder, "guard.lock")) },
		TryLock:  func(*os.File) error { return nil },
	}
}

// TestInterruptedStart: the outputs of the old plan go to safe before a new plan replaces it,
// even if the site ends meanwhile.
func TestInterruptedStart(t *testing.T) {
	f := testFiles(t.TempDir())
	if err := os.WriteFile(f.Plan, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "safe")
	t.Setenv("SAFE_MARK", mark)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.TakeOver(ctx, Plan{text: []byte("after")})
	plan, _ := os.ReadFile(f.Plan)
	if _, ran := os.Stat(mark); ran != nil && string(plan) != "before" {
		t.Errorf("the plan is %q, and nobody drove the outputs of before to safe: %v", plan, err)
	}
}
