package site

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestChoose: the user's own site comes first while it runs, and else the service's where
// there ever was one.
func TestChoose(t *testing.T) {
	own, service := Folder(t.TempDir()), Folder(t.TempDir())
	if got := choose(own, service+"/missing"); got != own {
		t.Error("without a service it is", got)
	}
	if got := choose(own, service); got != own {
		t.Error("with a service that never ran it is", got)
	}
	if err := os.WriteFile(service.path("lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := choose(own, service); got != service {
		t.Error("with a service it is", got)
	}
	ln, err := net.Listen("unix", own.OwnerSocket())
	if err != nil {
		t.Fatal(err)
	}
	if got := choose(own, service); got != own {
		t.Error("while the user's own site runs it is", got)
	}
	ln.Close()
	if got := choose(own, service); got != service {
		t.Error("once that has ended it is", got)
	}
}

// TestInterruptedStart: the outputs of the plan of before go to safe before another takes
// its place, though the site is told to end meanwhile.
func TestInterruptedStart(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "data"))
	start(t, f)
	if err := os.WriteFile(f.planFile(), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "safe")
	t.Setenv("SAFE_MARK", mark)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.makeWay(ctx, []byte("after"))
	plan, _ := os.ReadFile(f.planFile())
	if _, ran := os.Stat(mark); ran != nil && string(plan) != "before" {
		t.Errorf("the plan is %q, and nobody drove the outputs of before to safe: %v", plan, err)
	}
}
