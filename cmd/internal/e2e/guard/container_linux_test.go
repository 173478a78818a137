//go:build e2e

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// TestContainer kills the site in a container, whose first process the program is: the guard outlives the site, and the
// outputs go to their safe values.
func TestContainer(t *testing.T) {
	root := ""
	if os.Geteuid() == 0 {
		root = "root"
	}
	harness.Need(t, "the right to make a namespace of processes", root)
	program := harness.Need(t, "the program", harness.Program)
	for range harness.Workload(5, 50) {
		config, witness := harness.RelayConfig(t)
		r := &harness.RelaySite{
			Site:    harness.StartIn(t, harness.TempDir(t), config, nil, "unshare", "--pid", "--fork", "--kill-child", program),
			Witness: witness,
		}
		r.SwitchOn(t)
		first := onlyChild(t, r.Cmd.Process.Pid)
		syscall.Kill(onlyChild(t, first), syscall.SIGKILL)
		if took := r.WaitForOff(); r.State() != "off" {
			t.Errorf("the relay is %s %v after the site was killed", r.State(), took)
		}
		<-r.Ended
		r.Ended <- nil
	}
}

// onlyChild returns the process that another one has started.
func onlyChild(t *testing.T, of int) int {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of)) // each thread has its own
	var text []byte
	for _, file := range files {
		some, _ := os.ReadFile(file)
		text = append(text, some...)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}
