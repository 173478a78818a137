// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSubjects: .ci/e2e runs every folder of whole-system tests, and the README names it.
func TestSubjects(t *testing.T) {
	folders, err := filepath.Glob("../e2e/*/*_test.go")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folder of tests: %v", err)
	}
	subjects := map[string]bool{}
	for _, f := range folders {
		subjects[filepath.Base(filepath.Dir(f))] = true
	}
	for file, lines := range map[string]string{"e2e": `(?m)^run .*|\brun \w+ \w+`, "README.md": `\*\*\w+\*\*`} {
		text, err := os.ReadFile("../../../.ci/" + file)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.Join(regexp.MustCompile(lines).FindAllString(string(text), -1), "\n")
		for s := range subjects {
			if !regexp.MustCompile(`\b` + s + `\b`).MatchString(named) {
				t.Errorf(".ci/%s does not name the subject %s", file, s)
			}
		}
	}
}
