package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", GroupID: groupBoard, Args: noArgs,
		Short: "Show the configuration of the running site, or replace it",
		Long: `Show the text of the running site's configuration. config check checks another one there, with
the drivers and agents of that site, and config replace has the site use it.`,
		Example: "  agentsite config --site greenhouse > greenhouse.yaml\n" +
			"  agentsite config replace greenhouse.yaml --digest 6c1f… --site greenhouse",
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			c, err := callOwner(ctx, s, acts.ConfigurationAct, acts.None{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			a.note("for config replace --digest: %s", acts.Digest([]byte(c.Text)))
			switch {
			case a.out.terminal():
				c.Text = cleanLines(c.Text)
			case strings.ContainsFunc(c.Text, forbidden): // less and head pass them on to a terminal
				return errors.New("the site answers with control characters; --json shows them")
			}
			_, err = io.WriteString(a.out, c.Text)
			return err
		}),
	}
	cmd.AddCommand(a.configCheckCommand(), a.configReplaceCommand(), a.configTrialCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Args: exactly("FILE"), Short: "Check a configuration for the running site, and change nothing",
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			_, err := a.checkThere(ctx, s, args[0], false)
			if err != nil {
				return err
			}
			return a.print(map[string]bool{"ok": true}, "the site would take %s", args[0])
		}),
		ValidArgsFunction: completeYAML,
	}
}

func (a *app) configReplaceCommand() *cobra.Command {
	var n acts.NewConfiguration
	var trial time.Duration
	cmd := &cobra.Command{
		Use: "replace FILE", Args: exactly("FILE"), Short: "Replace the configuration of the running site",
		Long: `Replace the configuration of the running site by a file, and have it read. A file with a
mistake, or with a change that needs a restart, changes nothing. The configuration before is
kept beside the site's file, with .before at its name.

With --digest nothing is lost that somebody else has changed since agentsite config printed
the digest: then it changes nothing.

With --trial the site puts the configuration before back by itself, unless this command reaches
the site again within that time, and all that was well there is well for 10 s (a third of a
shorter trial). --restart permits a change that needs a restart of the site: its outputs go to
their safe values.`,
		Example: "  agentsite config replace greenhouse.yaml --trial 90s --site greenhouse",
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			text, err := a.checkThere(ctx, s, args[0], n.Restart)
			if err != nil {
				return err
			}
			if trial == 0 && n.Restart {
				return usagef("--restart needs --trial, such as --trial 90s")
			}
			n.Trial = trial.Seconds()
			if n.Text = text; n.Digest == "" {
				old, err := callOwner(ctx, s, acts.ConfigurationAct, acts.None{})
				if err != nil {
					return err
				}
				n.Digest = old.Digest
			}
			if n.Trial > 0 {
				return a.tryConfiguration(ctx, n, args[0])
			}
			c, err := callOwner(ctx, s, acts.ConfigureAct, n)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"digest": c.Digest}, "the site uses %s now", args[0])
		}),
		ValidArgsFunction: completeYAML,
	}
	cmd.Flags().StringVar(&n.Digest, "digest", "", "replace only the text with this digest, which agentsite config prints")
	cmd.Flags().BoolVar(&n.Well, "well", false, "go back also where a device is missing after the change")
	cmd.Flags().DurationVar(&trial, "trial", 0, "go back unless the site is well and reached again within this time")
	cmd.Flags().BoolVar(&n.Restart, "restart", false, "with --trial, permit a change that needs a restart of the site")
	return cmd
}

// checkThere returns the text of a file that the site would take. It prints mistakes and warnings.
func (a *app) checkThere(ctx context.Context, s *session, file string, restart bool) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("%w", err)
	}
	found, err := callOwner(ctx, s, acts.CheckAct, acts.NewConfiguration{Text: string(text), Restart: restart})
	if err != nil {
		return "", err
	}
	for _, w := range found.Warnings {
		fmt.Fprintf(a.errs, "warning: %s\n", continued(w))
	}
	for _, m := range found.Mistakes {
		at := file
		if m.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", file, m.Line, m.Column) // for editors
		}
		fmt.Fprintf(a.errs, "%s: %s\n", at, continued(m.Says))
	}
	if len(found.Mistakes) > 0 {
		return "", usagef("the site does not take %s, and nothing is changed", file)
	}
	return string(text), nil
}

// forbidden reports whether a terminal may interpret a character, and no editor writes it.
func forbidden(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }

// continued returns a site's text of several lines, of which only the first begins at the margin, where
// this program's own lines do.
func continued(s string) string { return strings.ReplaceAll(cleanLines(s), "\n", "\n  ") }

func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
