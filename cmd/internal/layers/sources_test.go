// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// source is a Go file of ours.
type source struct {
	path  string // from the root of the repository
	lines int
	*ast.File
}

// sources returns all Go files of ours, for every system and tag, but for generated ones
// and the replaced modules.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := readSources()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files are read: %v", len(all), err)
	}
	return all
}

var readSources = sync.OnceValues(func() (all []source, err error) {
	const root = "../../.."
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (slices.Contains([]string{"replaced", "testdata"}, d.Name()) || len(path) > len(root) && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if short, err := filepath.Rel(root, path); err == nil && !ast.IsGenerated(f) {
			all = append(all, source{filepath.ToSlash(short), strings.Count(string(text), "\n"), f})
		}
		return nil
	})
	return all, err
})

// declared returns the names that a file declares at its top level; methods as Type.Method.
func (s source) declared() (names []string) {
	for _, d := range s.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, receiver(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method's receiver and a dot; "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	return typ.(*ast.Ident).Name + "."
}

// TestStart: no package compiles a regular expression before main, which each start of the program
// and of its guard would wait for.
func TestStart(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "cmd/internal/e2e/") || strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, d := range s.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			ast.Inspect(g, func(n ast.Node) bool {
				if c, ok := n.(*ast.SelectorExpr); ok && c.Sel.Name == "MustCompile" {
					t.Errorf("%s compiles a regular expression at the start; put it into sync.OnceValue", s.path)
				}
				_, later := n.(*ast.FuncLit)
				return !later
			})
		}
	}
}
