package main

import (
	"context"

	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (a *app) ownersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "owners", GroupID: groupAgents, Args: noArgs,
		Short: "List the keys that own the site; add and remove one, or recover the site",
		Long: `An owner's key signs who may do what. Yours becomes the first by agentsite claim, or
when you make a token on the site's own machine. "agentsite identity --card -" prints
another's.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ownersSession("owners", func(s *session) error { return s.showOwners(cmd.Context()) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	for _, c := range []struct {
		word, short, done string
		change            func(c *ownerclient.Client, ctx context.Context, did string) error
	}{
		{"add", "Have a key own the site, too", "owns this site", (*ownerclient.Client).AddOwner},
		{"remove", "End a key's authority, and all that it granted", "owns this site no more", (*ownerclient.Client).RemoveOwner},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.word + " DID", Args: exactly("DID"), Short: c.short,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.ownersSession("owners", func(s *session) error {
					if c.word == "add" {
						if err := a.notASite(args[0], "", ""); err != nil {
							return err
						}
					}
					if err := s.own(cmd.Context(), func(ctx context.Context) error { return c.change(s.Owner, ctx, args[0]) }); err != nil {
						return err
					}
					if a.json {
						return s.showOwners(cmd.Context())
					}
					if err := a.say("%s %s", args[0], c.done); err != nil || c.word != "add" {
						return err
					}
					return s.tellOwner(cmd.Context())
				})
			},
			ValidArgsFunction: cobra.NoFileCompletions,
		})
	}
	cmd.AddCommand(a.recoveryCommand(), a.recoverCommand())
	return cmd
}

// tellOwner says how a new owner has the site known on a machine of their own.
func (s *session) tellOwner(ctx context.Context) error {
	all, err := s.access(ctx)
	if err != nil || len(all.At) == 0 {
		return err
	}
	return s.app.say("on their own machine: agentsite claim %s", state.ShellQuote(all.Address()))
}

func (s *session) showOwners(ctx context.Context) error {
	all, err := s.access(ctx)
	if err != nil {
		return err
	}
	if s.app.json {
		return s.app.printJSON(all.Owners)
	}
	if len(all.Owners) == 0 {
		return s.app.say("no key owns this site yet; who may use its machine does")
	}
	var rows [][]string
	for _, o := range all.Owners {
		rows = append(rows, []string{o.DID, o.Name})
	}
	return table(s.app.out, []string{"OWNER", "NAME"}, rows)
}
