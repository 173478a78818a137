// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestReplacedModules fails if go.mod requires another upstream version than that of a module in
// deploy/replaced, until somebody has compared the two.
func TestReplacedModules(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../deploy/replaced/README.md")
	if err != nil {
		t.Fatal(err)
	}
	replaced := regexp.MustCompile(`(?m)^replace (\S+) => \./deploy/replaced/(\S+)$`).FindAllStringSubmatch(string(mod), -1)
	if len(replaced) == 0 {
		t.Fatal("go.mod replaces no module by one of deploy/replaced")
	}
	for _, r := range replaced {
		module, folder := r[1], path.Base(r[2])
		required := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(string(mod))
		if required == nil {
			t.Errorf("go.mod replaces %s and does not require it: remove the line and deploy/replaced/%s", module, folder)
			continue
		}
		if row := "| `" + folder + "` | " + module + " " + required[1] + " |"; !strings.Contains(string(readme), row) {
			t.Errorf("go.mod requires %s %s, and deploy/replaced/README.md has no row %q: compare the folder with that version", module, required[1], row)
		}
	}
}
