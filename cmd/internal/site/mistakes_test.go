package site

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"agentsite/cmd/internal/hosting"
	"agentsite/device/board"
	"agentsite/node/config"
)

// mistake is a configuration that a newcomer writes, and what its error has to name.
type mistake struct {
	bad  string // in short: see whole
	line int    // that the error shows
	says string // words of it, separated by |
	// The remedy is new in place of old. The error has to show new itself, unless it begins with ~: then new is
	// one of many good answers.
	old, new string
}

// agentsFor are the outputs and readings of the rules among the mistakes.
const agentsFor = "devices:\n  g: { driver: sim }\nagents:\n  r: "

// whole returns the file that a mistake stands for: an entry of a device in braces, keys of one, a rule in
// braces, or everything.
func whole(text string) string {
	switch {
	case strings.HasPrefix(text, "{ kind"):
		return "site: { name: a }\n" + agentsFor + text + "\n"
	case strings.HasPrefix(text, "{"):
		return "site: { name: a }\ndevices:\n  it: " + text + "\n"
	case strings.HasPrefix(text, "+"):
		return "site: { name: a }\n" + text[1:]
	}
	return text
}

func checks(text string) error {
	cfg, err := config.Parse("a.yaml", []byte(whole(text)), Drivers(board.New()))
	if err == nil {
		err = hosting.Check(cfg)
	}
	return err
}

var places = regexp.MustCompile(`(?m)^a\.yaml:`)

// TestMistakes makes the mistakes of newcomers, and then does what each error says.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		err := checks(m.bad)
		if err == nil {
			t.Errorf("accepted:\n%s", whole(m.bad))
			continue
		}
		text := err.Error()
		if n := len(places.FindAllString(text, -1)); n != 1 {
			t.Errorf("%d messages for one mistake:\n%s\n%s", n, whole(m.bad), text)
		}
		var at *config.Error
		if !errors.As(err, &at) || at.Line != m.line {
			t.Errorf("not at line %d:\n%s\n%s", m.line, whole(m.bad), text)
			continue
		}
		remedy, open := strings.CutPrefix(m.new, "~")
		says := strings.Split(m.says, "|")
		if !open {
			says = append(says, strings.TrimSpace(remedy))
		}
		for _, word := range says {
			if !strings.Contains(fmt.Sprint(at.Err), word) {
				t.Errorf("%q is not in:\n%s", word, text)
			}
		}
		if !strings.Contains(m.bad, m.old) {
			t.Errorf("%q is not in %q", m.old, m.bad)
		}
		if err := checks(strings.Replace(m.bad, m.old, remedy, 1)); err != nil {
			t.Errorf("the remedy %q of\n%s\nis refused:\n%v", remedy, text, err)
		}
	}
}
