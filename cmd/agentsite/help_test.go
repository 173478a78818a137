package main

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

// commands calls do with each command of the program.
func commands(do func(*cobra.Command)) {
	a := &app{in: strings.NewReader(""), out: &output{Writer: io.Discard}, errs: io.Discard}
	root := a.root()
	a.addCommands(root)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		do(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// TestHelpFits: the help of each command fits a terminal of 80 columns, and only the program's own lists the
// flags of all commands.
func TestHelpFits(t *testing.T) {
	n := 0
	commands(func(c *cobra.Command) {
		n++
		var help strings.Builder
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(help.String()) {
			if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > helpWidth {
				t.Errorf("%s: %q", c.CommandPath(), line)
			}
		}
		if has := strings.Contains(help.String(), " --cacert "); has == c.HasParent() {
			t.Errorf("%s lists the flags of all commands: %t", c.CommandPath(), has)
		}
	})
	if n < 50 {
		t.Errorf("there are %d commands", n)
	}
}

// TestCommandsOfActs: the command that a refusal of an owner's operation names is there.
func TestCommandsOfActs(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: &output{Writer: io.Discard}, errs: io.Discard}
	root := a.root()
	a.addCommands(root)
	for _, row := range new(acts.Site).Operations() {
		words, flag, _ := strings.Cut(row.Command, " --")
		c, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 || flag != "" && c.Flag(flag) == nil {
			t.Errorf("%s names %q: %v %v", row.Name, row.Command, rest, err)
		}
	}
}
