package main

import (
	"context"

	"agentsite/agents/op"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/owner"

	"github.com/spf13/cobra"
)

func (a *app) ownersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "owners", GroupID: groupOwner, Args: noArgs,
		Short: "List, add and remove the owners of a site, or recover it",
		Long: `List the keys that own the site. An owner's key signs all permissions. Yours becomes the
first by agentsite claim, or when you create a token on the site's own machine.
"agentsite identity --card -" prints another person's.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error { return s.showOwners(ctx) }),
	}
	for _, c := range []struct {
		word, short, done string
		method            op.Name[acts.Name, acts.None]
	}{
		{"add", "Add an owner", "owns this site", acts.AddOwnerAct},
		{"remove", "Remove an owner, and end all that it granted", "no longer owns this site", acts.RemoveOwnerAct},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: c.word + " DID", Args: exactly("DID"), Short: c.short,
			RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
				if c.word == "add" {
					if err := a.checkNotSite(args[0], "", ""); err != nil {
						return err
					}
				}
				if _, err := callOwner(ctx, s, c.method, acts.Name{Name: args[0]}); err != nil {
					return err
				}
				if a.json {
					return s.showOwners(ctx)
				}
				if err := a.say("%s %s", args[0], c.done); err != nil || c.word != "add" {
					return err
				}
				return s.showAddress(ctx)
			}),
		})
	}
	cmd.AddCommand(a.recoveryCommand(), a.recoverCommand())
	return cmd
}

// showAddress prints how a new owner adds the site to the contacts on another machine.
func (s *session) showAddress(ctx context.Context) error {
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
	if len(all.Owners) == 0 {
		return s.app.print(all.Owners, "No owner yet. Until someone claims it, anyone with access to this computer controls it.")
	}
	if s.app.json {
		return s.app.printJSON(all.Owners)
	}
	var rows [][]string
	for _, o := range all.Owners {
		rows = append(rows, []string{o.DID, o.Name})
	}
	return table(s.app.out, []string{"OWNER", "NAME"}, rows)
}

func (a *app) recoveryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recovery", Args: noArgs,
		Short: "Create the recovery code, for when every owner's key is lost",
		Long: `Create the recovery code and print it. The site stores only its hash. Anyone with the code
can become the only owner: write it down and keep it safe. An earlier code becomes
invalid.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			made, err := askOwner(ctx, s, s.Owner.NewRecovery)
			if err != nil {
				return err
			}
			if !a.json {
				a.note("write this code down; it is not shown again. Anyone with it can become the only owner")
			}
			return a.print(made, "%s", made.Code)
		}),
	}
}

func (a *app) recoverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recover CODE", Args: exactly("CODE"),
		Short: "Become the only owner, with the recovery code",
		Long: `Become the only owner with the code of "agentsite owners recovery". All that other owners
granted ends. The code works once.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			me, err := peer.OwnerIdentity()
			if err != nil {
				return err
			}
			method, params := acts.RecoverAct, acts.Recovery{Code: args[0], DID: me.DID}
			if a.site != "" || a.peer != "" { // the connection proves the key
				method, params.DID = owner.ReclaimMethod, ""
			}
			if _, err := callOwner(ctx, s, method, params); err != nil {
				return err
			}
			user, err := peer.User()
			if err == nil {
				err = user.Contacts().SetOwned(a.site)
			}
			if err != nil {
				return err
			}
			if a.json {
				return s.showOwners(ctx)
			}
			return a.say("%s is the only owner now. The code is used up: agentsite owners recovery creates another", me.DID)
		}),
	}
}
