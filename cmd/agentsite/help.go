package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// firstCommands lists the commands on the first screen of help.
var firstCommands = []string{"run", "add", "status", "read", "set", "stop", "history", "chat", "open", "claim"}

// allTopic is the topic of help that lists all commands.
const allTopic = "all"

// usage returns how a command is called, with the commands below it and its own flags; of the program only the
// commands that people need first.
func usage(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if c.Runnable() && c.HasParent() {
		b.WriteString(hang("  ", c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("  " + c.CommandPath() + " [command]\n")
	}
	if c.HasExample() {
		b.WriteString("\nExamples:\n" + strings.TrimRight(c.Example, "\n") + "\n")
	}
	if !c.HasParent() {
		first := func(sub *cobra.Command) bool { return slices.Contains(firstCommands, sub.Name()) }
		b.WriteString(listed(c, "Commands to begin with:", first))
		b.WriteString("\nMore:\n")
		b.WriteString(hang("  "+pad(c.Name()+" help "+allTopic, 26), "all commands, and the flags that all of them take"))
		b.WriteString(hang("  "+pad(c.Name()+" help COMMAND", 26), "one command, with its flags and examples"))
		return b.String()
	}
	b.WriteString(listed(c, "Commands:", func(*cobra.Command) bool { return true }))
	if c.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + flagUsages(c.LocalFlags()))
	}
	b.WriteString("\nFlags of all commands, such as --site and --json: " + c.Root().Name() + " help " + allTopic + "\n")
	return b.String()
}

// usageOfAll returns all commands of the program, in their groups, and the flags that all of them take.
func usageOfAll(root *cobra.Command) string {
	text := "Usage:\n  " + root.Name() + " [command]\n"
	for _, g := range append(slices.Clone(root.Groups()), &cobra.Group{Title: "Help:"}) {
		text += listed(root, g.Title, func(c *cobra.Command) bool { return c.GroupID == g.ID })
	}
	return text + "\nFlags of all commands:\n" + flagUsages(root.PersistentFlags())
}

// listed returns the commands below c that are wanted under a title, "" for none.
func listed(c *cobra.Command, title string, wanted func(*cobra.Command) bool) string {
	all := ""
	for _, sub := range c.Commands() {
		if wanted(sub) && (sub.IsAvailableCommand() || sub.Name() == "help") {
			all += hang("  "+pad(sub.Name(), sub.NamePadding())+" ", sub.Short)
		}
	}
	if all == "" {
		return ""
	}
	return "\n" + title + "\n" + all
}

func flagUsages(flags *pflag.FlagSet) string {
	return strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n ") + "\n"
}

// helpCommand replaces cobra's own, which accepts unknown topics.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command",
		Example: "  agentsite help set\n  agentsite help agents allow\n  agentsite help all",
		Long: `Show how a command is used. "agentsite help all" lists all commands, and the flags that all of
them take.`,
		Args: func(cmd *cobra.Command, words []string) error {
			if slices.Equal(words, []string{allTopic}) {
				return nil
			}
			found, left, err := cmd.Root().Find(words)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("there is no command %q%s", clean(left[0]), suggestCommand(found, left[0]))
			}
			return err
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			if slices.Equal(words, []string{allTopic}) {
				fmt.Fprint(cmd.OutOrStdout(), usageOfAll(cmd.Root()))
				return nil
			}
			about, _, err := cmd.Root().Find(words)
			if err != nil {
				return err
			}
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(words) == 0 {
				names = append(names, cobra.CompletionWithDesc(allTopic, "All commands and common flags"))
				for _, c := range cmd.Root().Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
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
