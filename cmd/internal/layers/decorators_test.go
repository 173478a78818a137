// The detector makes a reading of all sources take minutes, and there is one goroutine.

//go:build !race

package layers

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestDecorators: no struct of the product embeds a Site. One that did would pass an operation that is
// added to agents.Site without knowing it: with its caller's principal, and not as a step of its task.
// One that declares each method does not compile then.
func TestDecorators(t *testing.T) {
	var product []source
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "cmd/internal/e2e/") && !strings.HasSuffix(s.path, "_test.go") {
			product = append(product, s)
		}
	}
	sites, declared := map[string]bool{}, map[string]bool{}
	var operations []string
	for _, s := range product {
		for _, name := range s.declared() {
			declared[path.Dir(s.path)+"."+name] = true
		}
		if all := s.interfaces()["agents.Site"]; all != nil {
			for _, m := range all.Methods.List {
				operations = append(operations, m.Names[0].Name)
			}
			sites["agents.Site"] = true
		}
	}
	if len(operations) < 10 {
		t.Fatalf("agents.Site has %q", operations)
	}
	for known := 0; known < len(sites); { // also those that embed one that is found later
		known = len(sites)
		for _, s := range product {
			for name, of := range s.interfaces() {
				for _, m := range of.Methods.List {
					if len(m.Names) == 0 && sites[s.typeName(m.Type)] {
						sites[name] = true
					}
				}
			}
		}
	}
	for name := range declared {
		implements := true
		for _, o := range operations {
			implements = implements && declared[name+"."+o]
		}
		if implements {
			sites[name] = true
		}
	}
	for _, want := range []string{"agents/tools.Site", "node.Node", "agents/group.Group"} {
		if !sites[want] {
			t.Errorf("%s is not found among %v", want, sites)
		}
	}
	delete(sites, "transport/mcp/client.Client") // it asks with the key of its connection, whatever the principal
	for _, s := range product {
		ast.Inspect(s.File, func(n ast.Node) bool {
			if of, ok := n.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					if name := s.typeName(f.Type); len(f.Names) == 0 && sites[name] {
						t.Errorf("a type in %s embeds %s: name the field, and declare each method of agents.Site", s.path, name)
					}
				}
			}
			return true
		})
	}
}

// interfaces returns the interfaces that a file declares, by their package and name.
func (s source) interfaces() map[string]*ast.InterfaceType {
	all := map[string]*ast.InterfaceType{}
	for _, d := range s.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					if of, ok := spec.Type.(*ast.InterfaceType); ok {
						all[path.Dir(s.path)+"."+spec.Name.Name] = of
					}
				}
			}
		}
	}
	return all
}

// typeName returns the package and name of a type of ours, or of what it points to; "" for any other.
func (s source) typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return s.typeName(of.X)
	case *ast.Ident:
		return path.Dir(s.path) + "." + of.Name
	case *ast.SelectorExpr:
		pkg, ok := of.X.(*ast.Ident)
		for _, i := range s.Imports {
			folder, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "agentsite/")
			if ok && ours && (i.Name == nil && path.Base(folder) == pkg.Name || i.Name != nil && i.Name.Name == pkg.Name) {
				return folder + "." + of.Sel.Name
			}
		}
	}
	return ""
}
