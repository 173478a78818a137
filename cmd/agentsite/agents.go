package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (a *app) allowCommand() *cobra.Command {
	var until, agent string
	cmd := &cobra.Command{
		Use: "allow [PERMISSION]", Short: "Give an agent of yours a permission, on one site or on all",
		Long: permissionHelp + `

With --site the permission is for that site. Without, it is for all sites that you know,
and for those that you claim later. The usual PERMISSION is
"` + peer.AssistantMay + `": to read everything, and
to move outputs within the site's limits. On a site that you do not own it is limited to
what you were granted. It ends after 90 days if it only reads, else after 7 days, unless
--until says otherwise. Run the command again to renew it.`,
		Example: "  agentsite agents allow\n  agentsite agents allow 'read *' --agent nightwatch --site shed --until never",
		Args:    optional("PERMISSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			words := peer.AssistantMay
			if len(args) > 0 {
				words = args[0]
			}
			end, err := ownerclient.GrantUntil(until, words)
			if err != nil {
				return err
			}
			if a.url != "" || a.data != "" || a.as != "" {
				return usagef("agents allow takes no --url, --data or --as: it is for sites that you know")
			}
			return a.allow(cmd, agent, words, end)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", peer.Assistant, "the agent; it is created where there is none")
	untilFlag(cmd, &until, "")
	cmd.RegisterFlagCompletionFunc("agent", completeAgents)
	return cmd
}

// allow gives the permission on each site, also after one fails, and reports failures at the
// end.
func (a *app) allow(cmd *cobra.Command, agent, words string, until time.Time) error {
	user, err := peer.User()
	if err != nil {
		return err
	}
	all, err := user.Contacts().List()
	if err != nil {
		return err
	}
	wanted, done := a.site, 0
	for _, k := range all {
		if wanted != "" && k.Name != wanted {
			continue
		}
		failed := a.allowOn(cmd.Context(), user, agent, k, words, until)
		if failed != nil {
			a.note("%s: %v", k.Name, failed)
			err = failed
			continue
		}
		done++
		a.say("%s may %s on %s, %s", agent, words, k.Name, lasts(until, cmd))
	}
	if done > 0 && wanted == "" {
		if err := user.SetGlobalPermission(peer.GlobalPermission{Agent: agent, May: words, Until: until}); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return coded{exitCode(err), errors.New("the permission was given on " + counted(done, "site") + " and not on all")}
	case done == 0:
		return usagef("you know no such site: agentsite sites lists the sites that you own or may use")
	}
	return nil
}

// allowOn gives an agent a permission on one site.
func (a *app) allowOn(ctx context.Context, user peer.Person, agent string, k peer.Contact, words string, until time.Time) error {
	a.site = k.Name
	return user.Allow(agent, k, words, until, func(signed owner.Signed) error {
		return a.with(func(s *session) error {
			_, err := callOwner(ctx, s, owner.GrantMethod, signed)
			if err == nil {
				s.warnOfUnmatched(ctx, words)
			}
			return err
		})
	})
}

// allowGlobal gives the agents their permissions for all sites on a site that was claimed.
func (a *app) allowGlobal(ctx context.Context, user peer.Person, k peer.Contact) {
	all, err := user.GlobalPermissions()
	for _, p := range all {
		failed := a.allowOn(ctx, user, p.Agent, k, p.May, p.Until)
		if failed == nil {
			a.note("%s may %s on %s too, %s", p.Agent, p.May, k.Name, ends(p.Until))
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		a.note("not all of your agents got their permissions on %s: run agentsite agents allow (%v)", k.Name, err)
	}
}

func completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, _ := peer.Agents()
	var names []string
	for _, agent := range all {
		names = append(names, agent.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// endTime is ends for a table's column UNTIL.
func endTime(until time.Time) string { return strings.TrimPrefix(ends(until), "until ") }
