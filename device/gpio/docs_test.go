package gpio

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs adds the driver of docs/drivers.md to this package, as the page says, and
// runs its test.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of Go, want the driver, its line and its test", len(blocks))
	}
	list, err := os.ReadFile("drivers.go")
	if err != nil {
		t.Fatal(err)
	}
	head, tail, ok := strings.Cut(string(list), "\t}\n}\n")
	if !ok {
		t.Fatal("the list does not end as it did")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder, overlay := t.TempDir(), map[string]string{}
	for name, text := range map[string]string{"leak.go": blocks[0], "drivers.go": head + blocks[1] + "\t}\n}\n" + tail, "leak_test.go": blocks[2]} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(here, name)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "test", "-overlay", file, "-run", "^TestLeak$", "-v", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLeak") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command("gofmt", "-l", filepath.Join(folder, "leak.go"), filepath.Join(folder, "leak_test.go")).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not as gofmt has it: %s %v", out, err)
	}
}
