// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"testing"
)

// TestLinked: each variable that a script sets by the linker is declared, as a text without a value or
// with a literal one, which the linker does not check. What is shipped has a floor for its clock.
func TestLinked(t *testing.T) {
	const floor = "agentsite/node/state.built"
	named := regexp.MustCompile(`-X ([a-z/]+)\.([A-Za-z]+)=`)
	for script, needs := range map[string]bool{"deploy/packages": true, "deploy/image/build": true, "Makefile": false, ".ci/lib": false, ".ci/e2e": false} {
		text, err := os.ReadFile("../../../" + script)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, m := range named.FindAllSubmatch(text, -1) {
			pkg, name := string(m[1]), string(m[2])
			found = found || pkg+"."+name == floor
			if folder := map[string]string{"main": "cmd/agentsite"}[pkg]; !declaresText(t, folder, pkg, name) {
				t.Errorf("%s sets %s.%s, which is not there", script, pkg, name)
			}
		}
		if needs && !found {
			t.Errorf("%s does not set %s: its programs believe any time", script, floor)
		}
	}
}

// declaresText reports whether the package in a folder, or the one of that path, declares a variable
// that the linker can set.
func declaresText(t *testing.T, folder, pkg, name string) bool {
	if folder == "" {
		folder = pkg[len("agentsite/"):]
	}
	for _, f := range sources(t) {
		if path.Dir(f.path) != folder {
			continue
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				typed, ok := v.Type.(*ast.Ident)
				text := ok && typed.Name == "string"
				if len(v.Values) == 1 {
					lit, ok := v.Values[0].(*ast.BasicLit)
					text = ok && lit.Kind == token.STRING
				}
				if text && slices.ContainsFunc(v.Names, func(i *ast.Ident) bool { return i.Name == name }) {
					return true
				}
			}
		}
	}
	return false
}
