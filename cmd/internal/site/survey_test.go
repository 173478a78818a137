package site

import (
	"os"
	"strings"
	"testing"

	"agentsite/device/board"
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

func TestSurvey(t *testing.T) {
	const text = `site: { name: a }
devices:
  pump: { driver: relay, pin: GPIO17 }
  lamp: { driver: relay, pin: gpiochip0/17 }
  gate: { driver: motor, forward: GPIO5, backward: GPIO6 }
`
	cfg, err := config.Parse("a.yaml", []byte(text), Drivers())
	if err != nil {
		t.Fatal(err)
	}
	chip := board.FakeHeader()
	chip.Take(6, "w1")
	const want = `a.yaml:5:3: gate: GPIO6 is in use by "w1"; end that, or choose another line
    5 |   gate: { driver: motor, forward: GPIO5, backward: GPIO6 }
      |   ^
a.yaml:3:26: pump: GPIO17 is line 17 of gpiochip0, which lamp (gpiochip0/17) has too; choose another line
    3 |   pump: { driver: relay, pin: GPIO17 }
      |                          ^`
	if err := survey(cfg, board.FakeLines(chip)); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := survey(cfg, board.FakeLines()); err != nil {
		t.Errorf("a machine without lines: %v", err)
	}
}
