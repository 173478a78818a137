//go:build e2e

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// InMountNamespace runs the calling test again in a mount namespace of its own, where it may
// mount file systems, and in those that more names, as options of unshare. It reports whether this is that run; the
// test returns at once where it is not.
func InMountNamespace(t *testing.T, more ...string) bool {
	t.Helper()
	if os.Getenv("E2E_ALONE") != "" {
		return true
	}
	root := ""
	if os.Geteuid() == 0 {
		root = "root"
	}
	Need(t, "the right to mount", root)
	args := append(append([]string{"--mount"}, more...), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	self := exec.Command("unshare", args...)
	self.Env = append(os.Environ(), "E2E_ALONE=1")
	out, err := self.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// MustRun runs a program and returns its output without surrounding space.
func MustRun(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// FillDisk fills the file system of a folder to the last byte, and returns a function that
// frees the space again.
func FillDisk(t *testing.T, data string) func() {
	t.Helper()
	f, err := os.Create(filepath.Join(data, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{4096, 1} { // to the last byte
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		err = nil
	}
	return func() { os.Remove(f.Name()) }
}
