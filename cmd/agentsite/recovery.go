package main

import (
	"context"
	"fmt"

	"agentsite/cmd/internal/peer"
	"agentsite/transport/owner"

	"github.com/spf13/cobra"
)

func (a *app) recoveryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recovery", Args: noArgs,
		Short: "Make the code that gets the site back when every owner's key is lost",
		Long: `Make the code that gets the site back when every owner's key is lost, and print it this
once: the site keeps only its hash. Whoever has the code can make themselves the only
owner, so write it down and keep it where you keep papers. A code from before is void.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ownersSession("owners", func(s *session) error { return s.makeRecovery(cmd.Context()) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func (s *session) makeRecovery(ctx context.Context) error {
	var made owner.MadeRecovery
	err := s.own(ctx, func(ctx context.Context) (err error) { made, err = s.Owner.NewRecovery(ctx); return err })
	if err != nil {
		return err
	}
	if s.app.json {
		return s.app.printJSON(made)
	}
	fmt.Fprintln(s.app.errs, "agentsite: write this down: it makes whoever has it the only owner, and is shown this once")
	return s.app.say("%s", made.Code)
}

func (a *app) recoverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recover CODE", Args: exactly("CODE"),
		Short: "Become the only owner, with the recovery code",
		Long: `Become the only owner with the code that "agentsite owners recovery" made. What other
owners granted ends. The code counts once.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ownersSession("owners", func(s *session) error {
				me, err := peer.OwnerIdentity()
				if err != nil {
					return err
				}
				err = s.own(cmd.Context(), func(ctx context.Context) error {
					if a.site != "" || a.peer != "" { // the connection proves the key
						return s.Owner.Reclaim(ctx, args[0])
					}
					return s.Owner.Recover(ctx, args[0], me.DID)
				})
				if err != nil {
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
					return s.showOwners(cmd.Context())
				}
				return a.say("%s is the only owner now; the code is used up, and agentsite owners recovery makes another", me.DID)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}
