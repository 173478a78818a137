package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the width of help: that of the narrowest terminal in use.
const helpWidth = 80

// setHelp replaces cobra's help, whose lines are as long as they were written, and which lists the flags
// of all commands below each.
func setHelp(root *cobra.Command) {
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), usage(c))
		return err
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		about := c.Long
		if about == "" {
			about = c.Short
		}
		c.InitDefaultHelpFlag()
		fmt.Fprint(c.OutOrStdout(), reflow(about, helpWidth)+"\n"+usage(c)) // the output keeps its error
	})
}

// usage returns how a command is called, with the commands below it and its own flags.
func usage(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if c.Runnable() {
		b.WriteString(hang("  ", c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("  " + c.CommandPath() + " [command]\n")
	}
	if c.HasExample() {
		b.WriteString("\nExamples:\n" + strings.TrimRight(c.Example, "\n") + "\n")
	}
	groups := append([]*cobra.Group{}, c.Groups()...)
	for _, g := range append(groups, &cobra.Group{Title: "Commands:"}) {
		listed := ""
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				listed += hang("  "+pad(sub.Name(), sub.NamePadding())+" ", sub.Short)
			}
		}
		if listed != "" {
			b.WriteString("\n" + g.Title + "\n" + listed)
		}
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(helpWidth), "\n ") + "\n")
	}
	if c.HasParent() {
		b.WriteString("\n" + "Flags of all commands, such as --site and --json: " + c.Root().Name() + " --help\n")
	}
	return b.String()
}

// reflow fits a text into a width. Paragraphs are filled; lines that begin with a space stay lines.
func reflow(text string, width int) string {
	var b strings.Builder
	paragraph := ""
	end := func() {
		b.WriteString(strings.Join(append(wrap(paragraph, width), ""), "\n"))
		paragraph = ""
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		switch {
		case line == "":
			end()
			b.WriteString("\n")
		case line[0] == ' ' || line[0] == '\t':
			end()
			b.WriteString(strings.ReplaceAll(strings.TrimRight(line, " "), "\t", " ") + "\n")
		default:
			paragraph = strings.TrimPrefix(paragraph+" "+line, " ")
		}
	}
	end()
	return b.String()
}

// hang fits a text behind a label into the width of help. Its further lines are indented as far.
func hang(label, text string) string {
	indent := strings.Repeat(" ", max(textWidth(label), 4))
	lines := wrap(text, helpWidth-len(indent))
	return label + strings.Join(lines, "\n"+indent) + "\n"
}

// wrap breaks a text into lines of a width, between words. A longer word has a line of its own.
func wrap(text string, width int) []string { return fill(strings.Fields(text), width) }

// fill puts words into lines of a width.
func fill(words []string, width int) (lines []string) {
	line, has := "", 0
	for _, word := range words {
		n := textWidth(word)
		if line != "" && has+1+n > width {
			lines, line, has = append(lines, line), "", 0
		}
		if line != "" {
			line, has = line+" ", has+1
		}
		line, has = line+word, has+n
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
