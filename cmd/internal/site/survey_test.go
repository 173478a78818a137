package site

import (
	"os"
	"strings"
	"testing"

	"agentsite/node/config"
)

// TestDocs checks the configurations of docs/drivers.md as an owner would.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("no YAML")
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if _, err := config.Parse("drivers.md", []byte("site: { name: docs }\n"+text), Drivers()); err != nil {
			t.Error(err)
		}
	}
}
