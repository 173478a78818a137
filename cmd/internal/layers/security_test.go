// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityIsShown: each promise of SECURITY.md names the tests that show it, and those
// are there.
func TestSecurityIsShown(t *testing.T) {
	const root = "../../.."
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	tests := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(path) > len(root) && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // git and the tools change theirs while the test runs
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(code, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, promises, _ := strings.Cut(string(text), "\n|---|---|---|---|\n")
	promises, _, cut := strings.Cut(promises, "\n## Known gaps")
	named := regexp.MustCompile("`(Test\\w+)`")
	count := 0
	for _, p := range regexp.MustCompile(`(?m)^(\| |- )`).Split(promises, -1)[1:] {
		count++
		shown := named.FindAllStringSubmatch(p, -1)
		if len(shown) == 0 {
			t.Errorf("no test shows that: %.80s", p)
		}
		for _, m := range shown {
			if !tests[m[1]] {
				t.Errorf("there is no %s, which is to show that: %.80s", m[1], p)
			}
		}
	}
	if !cut || count < 25 {
		t.Errorf("%d promises are found in SECURITY.md: has it another form?", count)
	}
}
