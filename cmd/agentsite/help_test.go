package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

// commands calls do with each command of the program.
func commands(do func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		do(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

// TestHelpFits: the help of each command fits a terminal of 80 columns, and none lists the flags of all commands but
// help all, which has every command.
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
		if strings.Contains(help.String(), " --cacert ") {
			t.Errorf("%s lists the flags of all commands", c.CommandPath())
		}
	})
	if n < 50 {
		t.Errorf("there are %d commands", n)
	}
	all := usageOfAll(newRoot())
	for _, c := range newRoot().Commands() {
		if !c.Hidden && !strings.Contains(all, "\n  "+c.Name()+" ") {
			t.Errorf("help all lacks %s", c.Name())
		}
	}
	for line := range strings.Lines(all) {
		if utf8.RuneCountInString(line) > helpWidth+1 {
			t.Errorf("help all: %q", line)
		}
	}
	first := usage(newRoot())
	for _, name := range firstCommands {
		if !strings.Contains(first, "\n  "+name+" ") {
			t.Errorf("the first screen lacks %s", name)
		}
	}
	if n := strings.Count(first, "\n"); n > 24 {
		t.Errorf("the first screen has %d lines", n)
	}
}

// TestCommandsOfActs: the command that a refusal of an owner's operation names is there.
func TestCommandsOfActs(t *testing.T) {
	root := newRoot()
	for _, row := range new(acts.Site).Operations() {
		words, flag, _ := strings.Cut(row.Command, " --")
		c, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 || flag != "" && c.Flag(flag) == nil {
			t.Errorf("%s names %q: %v %v", row.Name, row.Command, rest, err)
		}
	}
}
