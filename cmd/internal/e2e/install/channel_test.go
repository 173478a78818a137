//go:build e2e && linux

package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// channel makes the folder of a release with v1.0.1 for this machine, whose lists are of that time.
func (u *updates) channel(t *testing.T, at time.Time) string {
	t.Helper()
	folder := harness.TempDir(t)
	putFile(t, u.file, filepath.Join(folder, "updates/next.update"))
	tool(t, at, "release", "channels", "-key", filepath.Join(packages, "key"), "-keys", releaseKey(t).ID().String(),
		"-days", "30", folder)
	return folder
}

// checked runs update --check and returns its exit code and JSON.
func (u *updates) checked(t *testing.T) (exit int, out struct {
	Newest, Channel string
	Newer           bool
}) {
	t.Helper()
	argv := u.command("--check", "--json")
	text, err := exec.Command(argv[0], argv[1:]...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		exit = failed.ExitCode()
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return exit, out
}

// waits reports whether an update is staged.
func (u *updates) waits() bool {
	_, err := os.Stat(filepath.Join(u.dir, "next"))
	return err == nil
}

// TestChannelUpdate: the real program follows a channel, remembers where it is, and refuses what is hostile.
func TestChannelUpdate(t *testing.T) {
	u := newUpdates(t)
	now := time.Now()
	folder := u.channel(t, now.Add(-time.Hour))
	server := newReleaseSite(t, folder)

	u.must(t, "--later", "--releases", server.URL) // which the superuser chooses by that
	if exit, out := u.checked(t); exit != 10 || out.Newest != "v1.0.1" || !out.Newer || out.Channel != "stable" {
		t.Errorf("%d %+v", exit, out)
	}
	if err := os.Remove(filepath.Join(u.dir, "next")); err != nil {
		t.Fatal(err)
	}
	for what, serve := range map[string]func(){
		"tampered channel": func() { server.serve(folder, "/stable") },
		"tampered update":  func() { server.serve(folder, ".update") },
		"old channel":      func() { server.serve(u.channel(t, now.Add(-2*time.Hour)), "") },
		"expired channel":  func() { server.serve(u.channel(t, now.AddDate(0, 0, -31)), "") },
		"no channel":       func() { server.serve(harness.TempDir(t), "") },
	} {
		serve()
		if err := u.do("--later"); err == nil || u.waits() {
			t.Errorf("%s: %v, an update waits: %v", what, err, u.waits())
		}
	}
	server.serve(folder, "")
	u.must(t, "--later")
	u.must(t, "--settle")
	u.must(t, "--install")
	if got := u.runs(t); got != "new" {
		t.Errorf("%s runs", got)
	}
	u.prove(t, 12)
	if exit, out := u.checked(t); exit != 0 || out.Newer {
		t.Errorf("of the newest: %d %+v", exit, out)
	}
}

// TestSilentServer: an update from a server that never answers ends with Ctrl-C, and nothing waits.
func TestSilentServer(t *testing.T) {
	u := newUpdates(t)
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	argv := u.command("--later", "--releases", server.URL)
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || u.waits() {
		t.Errorf("%v, an update waits: %v", err, u.waits())
	}
}

// prove confirms the program in use, as it does itself when it runs well.
func (u *updates) prove(t *testing.T, sequence int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, "inbox/proven"), fmt.Appendln(nil, sequence), 0o644); err != nil {
		t.Fatal(err)
	}
	u.must(t, "--settle")
}

// TestBackCut kills the program at each of its system calls while the superuser goes back from v1.0.2 to v1.0.1.
// One of the two is in use at any moment, and after a repeated request the older one.
func TestBackCut(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		strace = harness.Need(t, "strace", "")
	}
	u := newUpdates(t)
	for sequence, version := range []string{12: "v1.0.1", 13: "v1.0.2"} {
		if version == "" {
			continue
		}
		u.sign(t, version, uint64(sequence))
		for _, step := range u.steps()[:3] {
			u.must(t, step...)
		}
		u.prove(t, sequence)
	}
	updated := filepath.Join(filepath.Dir(u.dir), "updated")
	harness.MustRun(t, "cp", "-a", u.dir, updated)
	inUse := func() string {
		to, err := os.Readlink(filepath.Join(u.dir, "agentsite"))
		if err != nil {
			t.Fatal(err)
		}
		u.runs(t) // the program in it is whole
		return strings.TrimSuffix(to, "/agentsite")
	}
	steps := [][]string{{"--back", "--later"}, {"--settle"}, {"--install"}}
	cuts, seen := 0, map[string]int{}
	for i, step := range steps {
		for _, call := range []string{"openat", "write", "fsync", "renameat", "unlinkat", "symlinkat"} {
			for n := 1; ; n++ {
				if err := os.RemoveAll(u.dir); err != nil {
					t.Fatal(err)
				}
				harness.MustRun(t, "cp", "-a", updated, u.dir)
				for _, before := range steps[:i] {
					u.must(t, before...)
				}
				if !u.cut(t, strace, call, n, step...) {
					break
				}
				cuts++
				seen[inUse()]++
				u.must(t, "--settle")
				if got := inUse(); got != "12" && got != "13" {
					t.Fatalf("%v cut at %s %d: %s is in use", step, call, n, got)
				}
			}
		}
	}
	t.Logf("%d cuts; right after them were in use: %v", cuts, seen)
	if cuts < 20 || seen["13"] == 0 || seen["12"] == 0 {
		t.Errorf("only %d cuts: %v", cuts, seen)
	}
}
