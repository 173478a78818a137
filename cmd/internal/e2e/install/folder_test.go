//go:build e2e && linux

package install

import (
	_ "embed"
	"os/exec"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

//go:embed testdata/service-folder.sh
var serviceFolder string

// TestServiceFolder: on a machine with the service, commands find its site without being
// told where it is: the superuser's, and those in its group. Others are told the group. Whose
// own site runs has that one.
func TestServiceFolder(t *testing.T) {
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", serviceFolder, "sh", harness.Need(t, "the program", harness.Program))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"superuser: service/relay", "group: service/relay", "others: 3 ", "--groups games nobody", "own: own/relay", "own ended: service/relay",
		"service ended: 6 ", "systemctl start agentsite",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
