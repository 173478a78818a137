//go:build e2e

package page

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestConfigureCut kills a site at each of the system calls by which it replaces its configuration. The file then
// has the text before or the new one, with all comments, and what is left beside it is not in the way of the next
// time.
func TestConfigureCut(t *testing.T) {
	t.Parallel()
	strace, _ := exec.LookPath("strace")
	harness.Need(t, "strace", strace)
	data, program := harness.TempDir(t), harness.Need(t, "the program", harness.Program)
	file, wanted := filepath.Join(data, "agentsite.yaml"), filepath.Join(harness.TempDir(t), "new.yaml")
	before := "# of the shed\nsite: { name: shed }\ndevices:\n  box: { driver: sim, model: relay } # a comment\n"
	after := before + "  air: { driver: sim, model: climate } # another\n" + strings.Repeat("# much\n", 2000)
	if err := os.WriteFile(wanted, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	beside := func(name string) []string {
		return []string{"." + name + ".agentsite.new", "." + name + ".agentsite", name}
	}
	for _, name := range append(append(beside("agentsite.yaml.before"), beside("agentsite.yaml")...), "") {
		for _, call := range []string{"openat", "write", "fsync", "fchmodat", "fchownat", "renameat", "unlinkat"} {
			site := harness.StartIn(t, data, before, nil, program)
			when := 1
			if name == "" {
				when = 4 // the folder is synced twice for each of both files, the last time with the new text in it
			}
			cutter := exec.Command(strace, "-f", "-o", "/dev/null", "-p", strconv.Itoa(site.Cmd.Process.Pid), "-P",
				filepath.Join(data, name), "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, when))
			says := &harness.LogBuffer{}
			cutter.Stderr = says
			if err := cutter.Start(); err != nil {
				t.Fatal(err)
			}
			harness.WaitFor(t, 10*time.Second, "it is traced", func() bool {
				return strings.Contains(says.String(), " attached")
			})
			_, err := site.CLI(t, "config", "replace", wanted)
			if err == nil {
				cutter.Process.Signal(os.Interrupt)
				cutter.Wait()
				site.Stop(t)
			} else {
				cutter.Wait()
				site.Kill(t)
			}
			text, readErr := os.ReadFile(file)
			switch is := [2]bool{bytes.Equal(text, []byte(before)), bytes.Equal(text, []byte(after))}; {
			case readErr != nil || is == [2]bool{}:
				t.Fatalf("cut at %s of %q: %v, %d bytes", call, name, readErr, len(text))
			case err == nil && is[0]:
				t.Fatalf("not cut at %s of %q, and not replaced", call, name)
			case err != nil && is[0]:
				seen["before"]++
			case err != nil:
				seen["after"]++
			}
		}
	}
	t.Logf("cuts: %v", seen)
	if seen["before"] < 12 || seen["after"] < 1 {
		t.Errorf("the text after cuts was %v", seen)
	}
}
