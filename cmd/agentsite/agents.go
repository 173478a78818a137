package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (a *app) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "agents", GroupID: groupAgents, Args: noArgs,
		Short: "List your agents, and what each may do where",
		Long: `An agent of yours has a key of its own, and may do what you permit it, never what you may
as an owner. "agentsite connect" speaks for one to an MCP client.`,
		RunE: func(*cobra.Command, []string) error {
			if err := a.claims("agents"); err != nil {
				return err
			}
			all, err := peer.Agents()
			if err != nil {
				return err
			}
			var rows [][]string
			for _, agent := range all {
				if a.json {
					if err := a.printJSON(agent); err != nil {
						return err
					}
					continue
				}
				for _, k := range agent.Sites {
					words, until := k.Permission()
					rows = append(rows, []string{agent.Name, k.Name, words, strings.TrimPrefix(ends(until), "until ")})
				}
			}
			switch {
			case a.json:
				return nil
			case len(rows) == 0:
				return a.say("no agent of yours may do anything: agentsite agents allow permits one")
			}
			return table(a.out, []string{"AGENT", "SITE", "MAY", "UNTIL"}, rows)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(a.allowCommand())
	return cmd
}

func (a *app) allowCommand() *cobra.Command {
	var until, agent string
	cmd := &cobra.Command{
		Use: "allow [PERMISSION]", Short: "Permit an agent of yours something, on one site or on all that you know",
		Long: wordsHelp + `

Without --site it is for all sites that you know, and for those that you claim later.
Without PERMISSION it is "` + peer.AssistantMay + `": the
agent reads everything and moves outputs within the site's own limits. Where you were
granted something, it is at most that. Run it again before it ends: after 90 days for
reading alone, and else after seven, unless --until says otherwise.`,
		Example: "  agentsite agents allow\n  agentsite agents allow 'read *' --agent nightwatch --site shed --until never",
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"PERMISSION"}[:min(len(args), 1)]...)(cmd, args)
		},
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
				return usagef("agents allow takes no --url, --data or --as: it is about sites that you know")
			}
			return a.allow(cmd, agent, words, end)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&agent, "agent", peer.Assistant, "which agent; it is made where there is none")
	cmd.Flags().StringVar(&until, "until", "", "when it ends: 12h, 30d, tomorrow, fri, 2026-12-24, 2026-12-24T18:00:00Z, never")
	cmd.RegisterFlagCompletionFunc("agent", completeAgents)
	cmd.RegisterFlagCompletionFunc("until", cobra.NoFileCompletions)
	return cmd
}

// allow goes on with the others where one site is not reached, and says so at the end.
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
		one := a.allowOn(cmd.Context(), user, agent, k, words, until)
		if one != nil {
			fmt.Fprintf(a.errs, "agentsite: %s: %s\n", clean(k.Name), clean(one.Error()))
			err = one
			continue
		}
		done++
		if err := a.say("%s may %s on %s, %s", agent, words, k.Name, lasts(until, cmd)); err != nil {
			return err
		}
	}
	if done > 0 && wanted == "" {
		if err := user.SetGlobalPermission(peer.GlobalPermission{Agent: agent, May: words, Until: until}); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return coded{exitCode(err), fmt.Errorf("it was permitted on %s, and not on all", counted(done, "site"))}
	case done == 0:
		return usagef("you know no such site: agentsite sites lists those that you claimed or were granted")
	}
	return nil
}

// allowOn permits an agent something on one site.
func (a *app) allowOn(ctx context.Context, user peer.Person, agent string, k peer.Contact, words string, until time.Time) error {
	a.site = k.Name
	return user.Allow(agent, k, words, until, func(signed owner.Signed) error {
		return a.with(func(s *session) error {
			err := s.own(ctx, func(ctx context.Context) error { return s.Owner.AddGrant(ctx, signed) })
			if err == nil {
				s.warnOfIdle(ctx, words)
			}
			return err
		})
	})
}

// allowStanding permits agents on a site that is the user's now what they may do on all.
func (a *app) allowStanding(ctx context.Context, user peer.Person, k peer.Contact) {
	all, err := user.GlobalPermissions()
	for _, s := range all {
		one := a.allowOn(ctx, user, s.Agent, k, s.May, s.Until)
		if one == nil {
			a.tell(fmt.Sprintf("%s may %s on %s too, %s", s.Agent, s.May, k.Name, ends(s.Until)))
		}
		err = errors.Join(err, one)
	}
	if err != nil {
		a.tell("not all of your agents are permitted on " + k.Name + " what they may do elsewhere: agentsite agents allow does that (" + err.Error() + ")")
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
