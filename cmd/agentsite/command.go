package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/state"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runFunc is the type of a cobra command's RunE.
type runFunc = func(cmd *cobra.Command, args []string) error

// onSite returns a command that calls do with a connection to the site that the flags name.
func (a *app) onSite(do func(ctx context.Context, s *session, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		return a.with(func(s *session) error { return do(cmd.Context(), s, args) })
	}
}

// asOwner is onSite for an owner's command. It refuses --url, which proves no key.
func (a *app) asOwner(do func(ctx context.Context, s *session, args []string) error) runFunc {
	run := a.onSite(do)
	return func(cmd *cobra.Command, args []string) error {
		if err := a.refuseURL(words(cmd)); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// onMachine returns a command that works on the site's own machine only. It calls do with the
// data folder that find returns.
func (a *app) onMachine(find func() (state.Folder, error), do func(ctx context.Context, f state.Folder, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.requireLocal(words(cmd)); err != nil {
			return err
		}
		folder, err := find()
		if err != nil {
			return err
		}
		return do(cmd.Context(), folder, args)
	}
}

// asUser returns a command about the user's key and contacts. It refuses the flags that name a
// site.
func (a *app) asUser(do func(ctx context.Context, user peer.Person, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		if a.url != "" || a.site != "" || a.peer != "" || a.data != "" {
			return usagef("%s takes no --site, --peer, --url or --data", words(cmd))
		}
		user, err := peer.User()
		if err != nil {
			return err
		}
		return do(cmd.Context(), user, args)
	}
}

// requireLocal refuses --url, --site and --peer.
func (a *app) requireLocal(command string) error {
	if a.url != "" || a.site != "" || a.peer != "" {
		return usagef("%s works on the site's own machine only: leave out --url, --site and --peer", command)
	}
	return nil
}

// refuseURL refuses --url for an owner's command.
func (a *app) refuseURL(command string) error {
	if a.url != "" {
		return usagef("%s is for owners: run it on the site's own machine, or with --site", command)
	}
	return nil
}

// words returns the words of a command after the program's name.
func words(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// noArgs, exactly and optional replace cobra's own, whose errors contain no advice.
func noArgs(cmd *cobra.Command, args []string) error { return exactly()(cmd, args) }

func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			if name, value, ok := strings.Cut(strings.Join(args, " "), "="); ok && len(args) == 1 && len(names) == 2 {
				return fmt.Errorf("%s is missing: write %s, with a blank instead of =", names[1], clean(name+" "+value))
			}
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names) && cmd.Flags().Lookup(args[len(names)]) != nil:
			return fmt.Errorf("unexpected argument %q: write --%[1]s", args[len(names)])
		case len(args) > len(names):
			if _, err := time.ParseDuration(args[len(names)]); err == nil && cmd.Flags().Lookup("for") != nil {
				return fmt.Errorf("unexpected argument %q: write --for %[1]s", args[len(names)])
			}
			return fmt.Errorf("unexpected argument %q%s", clean(args[len(names)]), suggestCommand(cmd, args[len(names)]))
		}
		return nil
	}
}

// suggestCommand ends an error about word with the nearest command directly below cmd.
func suggestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return device.Suggest(word, names, "")
}

func optional(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return exactly([]string{name}[:min(len(args), 1)]...)(cmd, args)
	}
}

// help is the run function of a command that only has others below it.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// fileFlags are the flags that complete to any file.
var fileFlags = map[string]bool{"token-file": true, "cacert": true, "card": true, "passphrase-file": true, "out": true, "allow": true}

// completeNoFiles gives the arguments and flags without a completion an empty one; otherwise
// the shell offers files.
func completeNoFiles(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, known := cmd.GetFlagCompletionFunc(f.Name)
		if !known && len(f.Annotations) == 0 && !fileFlags[f.Name] && f.Value.Type() != "bool" {
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	for _, sub := range cmd.Commands() {
		completeNoFiles(sub)
	}
}

// untilFlag adds --until.
func untilFlag(cmd *cobra.Command, until *string, usual string) {
	cmd.Flags().StringVar(until, "until", usual, "when it ends: 12h, 30d, tomorrow, fri, 2026-12-24, 2026-12-24T18:00:00Z, never")
}
