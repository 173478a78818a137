//go:build e2e && linux

package install

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/update"
)

// updates is a folder of programs, in which the package's is in use.
type updates struct {
	program string // agentsite, as the makers of packages build it
	dir     string
	file    string // v1.0.1, signed
	content []byte // its program
}

const packagesOwn = "/usr/lib/agentsite/agentsite" // nobody starts it here

func newUpdates(t *testing.T) *updates {
	t.Helper()
	harness.Need(t, "the packages", packages)
	u := &updates{program: filepath.Join(packages, "agentsite"), dir: filepath.Join(harness.TempDir(t), "updates"), content: bytes.Repeat([]byte("v1.0.1\n"), 280_000)}
	u.file = filepath.Join(filepath.Dir(u.dir), "next.update")
	u.sign(t, "v1.0.1", 12)
	u.begin(t)
	return u
}

func (u *updates) sign(t *testing.T, version string, sequence uint64) {
	t.Helper()
	var b bytes.Buffer
	err := update.Sign(&b, update.Release{Version: version, Sequence: sequence, Target: update.Target()}, u.content, releaseKey(t))
	if err == nil {
		err = os.WriteFile(u.file, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// begin resets the folder to the package's state.
func (u *updates) begin(t *testing.T) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(u.dir), os.MkdirAll(filepath.Join(u.dir, "inbox"), 0o755)); err != nil {
		t.Fatal(err)
	}
	u.must(t, "--settle")
}

func (u *updates) command(args ...string) []string {
	return append([]string{u.program, "update", "--folder", u.dir}, args...)
}

// do runs a command to its end.
func (u *updates) do(args ...string) error {
	argv := u.command(args...)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}

func (u *updates) must(t *testing.T, args ...string) {
	t.Helper()
	if err := u.do(args...); err != nil {
		t.Fatal(err)
	}
}

// runs is which program would be started: old, new, or a failure of the test.
func (u *updates) runs(t *testing.T) string {
	t.Helper()
	to, err := os.Readlink(filepath.Join(u.dir, "agentsite"))
	if err != nil {
		t.Fatal(err)
	}
	if to == packagesOwn {
		return "old"
	}
	if got, err := os.ReadFile(filepath.Join(u.dir, to)); err != nil || !bytes.Equal(got, u.content) {
		t.Fatalf("%s would be started, with %d bytes that nobody signed (%v)", to, len(got), err)
	}
	return "new"
}

// steps are an update: fetched, then the service is started, and again.
func (u *updates) steps() [][]string {
	return [][]string{{"--later", u.file}, {"--settle"}, {"--install"}, {"--settle"}}
}

// cut runs a step of an update and kills it at its nth system call of a name. It returns false if the step has ended
// before.
func (u *updates) cut(t testing.TB, strace, call string, n int, step ...string) bool {
	t.Helper()
	argv := append([]string{
		"-f", "-qqq", "-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n),
	}, u.command(step...)...)
	err := exec.Command(strace, argv...).Run()
	if killed := (*exec.ExitError)(nil); errors.As(err, &killed) &&
		killed.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v, not cut at %s %d: %v", step, call, n, err)
	}
	return false
}

// TestUpdateCut kills the program at each of its system calls during an update in turn. At any
// moment the old or the new program would be started, and after a repeated update the new one.
func TestUpdateCut(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		strace = harness.Need(t, "strace", "")
	}
	u := newUpdates(t)
	cuts, seen := 0, map[string]int{}
	for i, step := range u.steps() {
		for _, call := range []string{"openat", "write", "fsync", "renameat", "unlinkat", "mkdirat", "symlinkat", "fchmod"} {
			for n := 1; ; n++ {
				u.begin(t)
				for _, before := range u.steps()[:i] {
					u.must(t, before...)
				}
				if !u.cut(t, strace, call, n, step...) {
					break
				}
				cuts++
				seen[step[0]+" "+u.runs(t)]++
				// The service starts, as it would after a loss of power, and once more without
				// that the new one has proven itself.
				u.must(t, "--settle")
				u.runs(t)
				u.must(t, "--settle")
				if got := u.runs(t); got != "old" {
					t.Fatalf("%v cut at %s %d: %s runs, which has not proven itself", step, call, n, got)
				}
				if cuts%4 != 0 {
					continue
				}
				for _, again := range u.steps()[:3] {
					u.must(t, again...)
				}
				if got := u.runs(t); got != "new" {
					t.Fatalf("%v cut at %s %d, and done again: %s runs", step, call, n, got)
				}
			}
		}
	}
	t.Logf("%d cuts; right after them ran: %v", cuts, seen)
	// With the full disks and the spoilt files below there are more than 200.
	if cuts < 100 {
		t.Errorf("only %d cuts", cuts)
	}
}

// TestUpdateFull: on a disk that is full at any point of an update, the old or the new
// program would be started.
func TestUpdateFull(t *testing.T) {
	if !harness.InMountNamespace(t) {
		return
	}
	u := newUpdates(t)
	if err := os.MkdirAll(u.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for size := 100; size <= 5000; size += 100 { // the program is there twice, of 1914 KiB
		harness.MustRun(t, "mount", "-t", "tmpfs", "-o", "size="+strconv.Itoa(size)+"k", "none", u.dir)
		if err := os.Mkdir(filepath.Join(u.dir, "inbox"), 0o755); err != nil {
			t.Fatal(err)
		}
		u.must(t, "--settle")
		var failed error
		for _, step := range u.steps()[:3] {
			if err := u.do(step...); err != nil {
				failed = err
				if !strings.Contains(err.Error(), "no space left") && !strings.Contains(err.Error(), "disk is full") {
					t.Errorf("%d KiB: %v", size, err)
				}
			}
			u.runs(t)
		}
		if got := u.runs(t); (got == "new") != (failed == nil) {
			t.Errorf("%d KiB: %s runs, and %v", size, got, failed)
		}
		seen[u.runs(t)]++
		u.must(t, "--settle")
		if got := u.runs(t); got != "old" {
			t.Errorf("%d KiB: %s runs", size, got)
		}
		harness.MustRun(t, "umount", u.dir)
	}
	t.Logf("%v", seen)
	if seen["old"] == 0 || seen["new"] == 0 {
		t.Error("no disk was full, or all were")
	}
}

// TestUpdateFetched: an address does as a file does. Of a transfer that breaks off nothing
// is kept.
func TestUpdateFetched(t *testing.T) {
	u := newUpdates(t)
	whole, err := os.ReadFile(u.file)
	if err != nil {
		t.Fatal(err)
	}
	send := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			w.Write(whole[:n])
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/half", send(len(whole)/2))
	mux.HandleFunc("/whole", send(len(whole)))
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]string{"/none": "404 Not Found", "/half": "unexpected EOF"} {
		if err := u.do("--later", server.URL+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Stat(filepath.Join(u.dir, "next")); err == nil {
			t.Errorf("%s waits", path)
		}
	}
	u.must(t, "--later", server.URL+"/whole")
	u.must(t, "--settle")
	u.must(t, "--install")
	if got := u.runs(t); got != "new" {
		t.Errorf("%s runs", got)
	}
}

// TestUpdateSpoilt: a file that is truncated, altered by a bit, older or not signed is not kept. If
// somebody else has put such a file into the inbox, it is not used.
func TestUpdateSpoilt(t *testing.T) {
	u := newUpdates(t)
	whole, err := os.ReadFile(u.file)
	if err != nil {
		t.Fatal(err)
	}
	head := len(whole) - len(u.content)
	inbox := filepath.Join(u.dir, "inbox", "next")
	for i := range 60 {
		at := rand.IntN(len(whole))
		if i < 30 {
			at = rand.IntN(head)
		}
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= 1 << rand.IntN(8)
		if i%3 == 0 {
			spoilt = whole[:at]
		}
		if err := os.WriteFile(u.file, spoilt, 0o644); err != nil {
			t.Fatal(err)
		}
		if u.do("--later", u.file) == nil {
			t.Fatalf("spoilt at %d it is taken", at)
		}
		if _, err := os.Stat(filepath.Join(u.dir, "next")); err == nil {
			t.Fatalf("spoilt at %d it waits", at)
		}
		if err := os.WriteFile(inbox, spoilt, 0o644); err != nil {
			t.Fatal(err)
		}
		if u.do("--install") == nil || u.runs(t) != "old" {
			t.Fatalf("spoilt at %d it is installed", at)
		}
	}
	u.sign(t, "v0.9.0", 9)
	if err := u.do("--later", u.file); err == nil || !strings.Contains(err.Error(), "older") {
		t.Errorf("an old one: %v", err)
	}
}
