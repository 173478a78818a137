// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// architecture returns the text of docs/architecture.md.
func architecture(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestArchitectureNames checks that each file with a function that the walks of
// docs/architecture.md name declares that function, and that each package has a row.
func TestArchitectureNames(t *testing.T) {
	text := architecture(t)
	declared := make(map[string][]string) // by file
	for _, f := range sources(t) {
		declared[f.path] = f.declared()
	}
	named := regexp.MustCompile("`([a-z0-9_/]+\\.go): ([A-Za-z.]+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 60 {
		t.Errorf("%d functions are found in the walks: are they written in another form?", len(named))
	}
	for _, m := range named {
		if names, ok := declared[m[1]]; !ok {
			t.Errorf("docs/architecture.md names the file %s, which does not exist", m[1])
		} else if !slices.Contains(names, m[2]) {
			t.Errorf("docs/architecture.md names %s in %s, which does not declare it", m[2], m[1])
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| .").FindAllStringSubmatch(text, -1)
	var folders []string
	for _, r := range rows {
		folders = append(folders, r[1])
	}
	for _, l := range layers {
		if !slices.Contains(folders, l.folder) {
			t.Errorf("the table of packages in docs/architecture.md has no row for %s", l.folder)
		}
	}
	for _, folder := range folders {
		if !slices.ContainsFunc(layers, func(l layer) bool { return l.folder == folder }) {
			t.Errorf("the table of packages in docs/architecture.md has a row for %s, which is no package", folder)
		}
	}
}

// TestSizes checks that no file is longer than a reader takes in, and that no package
// exports more names than a newcomer can look through. Methods and fields do not count.
func TestSizes(t *testing.T) {
	const maxLines, maxNames = 500, 60
	// An operation has a name, a request and an answer.
	more := map[string]int{"node/acts": 42, "agents": 20}
	exported := make(map[string]map[string]bool) // by package; a name of two systems counts once
	for _, f := range sources(t) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines, and may have %d: split it by subject", f.path, f.lines, maxLines)
		}
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, name := range f.declared() {
			if ast.IsExported(name) && !strings.Contains(name, ".") {
				pkg := path.Dir(f.path)
				if exported[pkg] == nil {
					exported[pkg] = make(map[string]bool)
				}
				exported[pkg][name] = true
			}
		}
	}
	for pkg, names := range exported {
		if n, most := len(names), maxNames+more[pkg]; n > most {
			t.Errorf("%s exports %d names, and may export %d: unexport what only it uses, or split it", pkg, n, most)
		}
	}
}
