package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (a *app) allowCommand() *cobra.Command {
	var until, agent string
	cmd := &cobra.Command{
		Use: "allow [PERMISSION]", Short: "Give an agent of yours a permission, on one site or on all",
		Long: permissionHelp + `

With --site or AGENTSITE_SITE the permission is for that site. Without, it is for all sites that you know,
and for those that you claim later. It replaces what you gave the agent there before, at
once, also where the agent is connected. The usual PERMISSION is
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
			if a.url != "" || a.data != "" || a.as != "" || a.peer != "" { // a contact's key became its name
				return usagef("agents allow takes no --url, --data or --as: it is for sites that you know")
			}
			if may, err := access.ParsePermissions(words); err == nil && slices.ContainsFunc(may, access.Permission.Answers) {
				return usagef("agents answer no calls that wait for you: use approve is for your phone, by agentsite grant phone")
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
	wanted, done := a.namedSite(), 0
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
		within := ""
		if !k.Owner {
			most, _ := k.Permission()
			within = ", as far as you may: " + most
		}
		a.say("%s may %s on %s, %s%s", agent, words, k.Name, lasts(until, cmd), within)
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
	err := user.Allow(agent, k, words, until, func(signed acts.Signed) error {
		return a.with(func(s *session) error {
			if _, err := callOwner(ctx, s, acts.GrantAct, signed); err != nil {
				return err
			}
			s.warnOfUnmatched(ctx, words)
			if g, err := access.ParseGrant(signed.Grant); err == nil {
				s.noteOthers(ctx, g.Audience().String(), g.ID().String())
			}
			return nil
		})
	})
	if err != nil || k.Owner {
		return err
	}
	if err := a.on(k.Name, agent).with(func(*session) error { return nil }); err != nil { // it presents the grant
		a.note("%s is not told yet that %s has this permission, and no wider one: that is so once the agent connects (%v)", k.Name, agent, err)
	}
	return nil
}

// noteOthers says what a key has on the site beside the grant with an ID.
func (s *session) noteOthers(ctx context.Context, did, id string) {
	all, err := askOwner(ctx, s, s.Owner.Access)
	if err != nil {
		return
	}
	for _, g := range all.Grants {
		if g.To == did && g.ID != id && (g.Until.IsZero() || g.Until.After(all.Time)) {
			s.app.note("it has more by another grant, %s: agentsite grants lists that", ends(g.Until))
		}
	}
}

// allowGlobal gives the agents and other keys their permissions for all sites on a site that was claimed.
func (a *app) allowGlobal(ctx context.Context, user peer.Person, k peer.Contact) {
	all, err := user.GlobalPermissions()
	for _, p := range all {
		failed := a.allowOn(ctx, user, p.Agent, k, p.May, p.Until)
		if failed == nil {
			a.note("%s may %s on %s too, %s", p.Agent, p.May, k.Name, ends(p.Until))
		}
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, a.allowKeys(ctx, user, k))
	if err != nil {
		a.note("not all who get a permission on each of your sites got it on %s: run "+
			"agentsite agents allow or agentsite fleet allow again (%v)", k.Name, err)
	}
}

// allowKeys gives other keys their permissions for all sites on a site that was claimed.
func (a *app) allowKeys(ctx context.Context, user peer.Person, k peer.Contact) error {
	all, err := user.KeyGrants().Valid()
	if len(all) == 0 || err != nil {
		return err
	}
	return a.on(k.Name, "").with(func(s *session) error {
		var failed error
		for _, g := range all {
			if _, err := giveOn(ctx, user, s.Connection, k, grantee{did: g.To, name: g.Name}, g.May, g.Until); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			a.note("%s may %s on %s too, %s", cmp.Or(g.Name, g.To), g.May, k.Name, ends(g.Until))
		}
		return failed
	})
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
