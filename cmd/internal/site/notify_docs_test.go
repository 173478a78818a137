package site

import (
	"os"
	"strings"
	"testing"

	"agentsite/cmd/internal/hosting"
	"agentsite/device/board"
	"agentsite/node/config"
)

// TestNotificationDocs checks the parts of configurations of the page about notifications, with devices of the board
// for those that it names and a receiver for its agents: none has a mistake, and none asks who is not there.
func TestNotificationDocs(t *testing.T) {
	const file = "../../../docs/notifications.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	devices := "site: { name: docs }\ndevices:\n  fridge: { driver: sim, model: relay }\n  valve: { driver: sim, model: relay }\n"
	named := strings.NewReplacer("fridge/door", "fridge/relay", "valve/open", "valve/relay")
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		text = devices + named.Replace(text)
		if !strings.Contains(text, "\nnotify:") {
			text += "notify: { to: { phone: { ntfy: \"https://ntfy.sh/garden-7f3k\" } } }\n"
		}
		cfg, err := config.Parse(file, []byte(text), Drivers(board.New()))
		if err == nil {
			err = hosting.Check(cfg)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, doubt := range Doubts(cfg, "") {
			t.Error(doubt)
		}
	}
	if len(blocks) < 4 {
		t.Errorf("%d examples", len(blocks))
	}
}
