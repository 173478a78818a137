//go:build e2e

package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// TestBackupOnFullDisk: a failed backup leaves no partial file and keeps the previous one. A
// restore that fails on a full disk succeeds afterwards.
func TestBackupOnFullDisk(t *testing.T) {
	if !harness.InMountNamespace(t) {
		return
	}
	data, stick := harness.TempDir(t), harness.TempDir(t)
	passphrase := filepath.Join(harness.TempDir(t), "passphrase")
	if err := os.WriteFile(passphrase, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := harness.Need(t, "the program", harness.Program)
	harness.MustRun(t, site, "identity", "--data", data)
	harness.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=1m", "none", stick)
	t.Cleanup(func() { harness.MustRun(t, "umount", "--lazy", stick) })
	old := filepath.Join(stick, "old")
	harness.MustRun(t, site, "backup", old, "--data", data, "--passphrase-file", passphrase)
	before, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	mend := harness.FillDisk(t, stick)
	restored := filepath.Join(stick, "data")
	for _, args := range [][]string{{"backup", filepath.Join(stick, "new")}, {"backup", old, "--force"}, {"restore", old, "--data", restored}} {
		cmd := exec.Command(site, append(args, "--passphrase-file", passphrase)...)
		cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+data)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "disk is full") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if after, err := os.ReadFile(old); err != nil || !bytes.Equal(before, after) {
		t.Error("the backup of before is another", err)
	}
	all, _ := filepath.Glob(filepath.Join(stick, "*"))
	hidden, _ := filepath.Glob(filepath.Join(stick, ".a*"))
	if left := strings.Join(append(all, hidden...), " "); strings.Contains(left, "new") || len(hidden) > 0 {
		t.Error("left behind: ", left)
	}
	if _, err := os.Stat(filepath.Join(restored, "key")); err == nil {
		t.Error("there is a key")
	}
	mend()
	harness.MustRun(t, site, "restore", old, "--data", restored, "--passphrase-file", passphrase)
	did := regexp.MustCompile(`did:key:z6Mk\w+`)
	if was, is := harness.MustRun(t, site, "identity", "--data", data), harness.MustRun(t, site, "identity", "--data", restored); !did.MatchString(was) || did.FindString(was) != did.FindString(is) {
		t.Error(was, is)
	}
}
