package ops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPrepareChildren: the units of the configuration's children are there, and those of others
// are not.
func TestPrepareChildren(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, unitFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "agentsite.yaml")
	prepare := func(text string, want ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("site: { name: a }\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(t.Context(), PrepareOptions{Config: file, Root: root, Boot: filepath.Join(root, "boot")}); err != nil {
			t.Fatal(err)
		}
		var names []string
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			names = append(names, f.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q; want %q", text, names, want)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "other.service"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	prepare("agents: { a: { kind: mcp, command: [sh], tools: [b] }, c: { kind: mcp, command: [sh], tools: [d], isolation: none } }",
		"agentsite-child-a.socket", "agentsite-child-a@.service", "other.service")
	prepare("agents: { c: { kind: mcp, command: [sh], tools: [d], isolation: none } }", "other.service")
}
