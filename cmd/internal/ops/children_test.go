package ops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	prepareWith := func(mistake, text string, want ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("site: { name: a }\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Prepare(t.Context(), PrepareOptions{Config: file, Root: root, Boot: filepath.Join(root, "boot")})
		if mistake == "" && err != nil || mistake != "" && (err == nil || !strings.Contains(err.Error(), mistake)) {
			t.Fatalf("%s: %v", text, err)
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
	prepare := func(text string, want ...string) { t.Helper(); prepareWith("", text, want...) }
	if err := os.WriteFile(filepath.Join(folder, "other.service"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	prepare("agents: { a: { kind: mcp, command: [sh], tools: [b] }, c: { kind: mcp, command: [sh], tools: [d], isolation: none } }",
		"agentsite-child-a.end.socket", "agentsite-child-a.end@.service", "agentsite-child-a.socket", "agentsite-child-a@.service", "other.service")
	const secret = "agents: { a: { kind: mcp, command: [sh], tools: [b], secrets: { KEY: a.key } } }"
	prepareWith("a.key", secret, "other.service")
	key := filepath.Join(root, "a.key")
	if err := os.WriteFile(key, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	prepareWith("chmod 600 "+key, secret, "other.service")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	prepare(secret, "agentsite-child-a.end.socket", "agentsite-child-a.end@.service", "agentsite-child-a.socket", "agentsite-child-a@.service", "other.service")
	prepare("agents: { c: { kind: mcp, command: [sh], tools: [d], isolation: none } }", "other.service")
}

// TestPrepareAgain: units that were written but perhaps not loaded by the service manager, because
// the program ended early, are written and loaded the next time.
func TestPrepareAgain(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, unitFolder)
	for _, dir := range []string{folder, filepath.Join(root, "boot")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "agentsite.yaml")
	prepare := func(net string) (did []string, err error) {
		t.Helper()
		text := "site: { name: a }\nagents: { a: { kind: mcp, command: [sh], tools: [b], net: " + net + " } }"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Prepare(t.Context(), PrepareOptions{Config: file, Root: root, Boot: filepath.Join(root, "boot")})
	}
	if _, err := prepare("true"); err != nil {
		t.Fatal(err)
	}
	obstacle := filepath.Join(folder, "agentsite-child-a.end.socket") // which is written before the service
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare("false"); err == nil {
		t.Error("a folder was written")
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	const step = "unit agentsite-child-a@.service written"
	if did, err := prepare("false"); err != nil || !slices.Contains(did, step) {
		t.Errorf("%q, %v", did, err)
	}
	if did, err := prepare("false"); err != nil || slices.Contains(did, step) {
		t.Errorf("the third time: %q, %v", did, err)
	}
}
