package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

// grantee is the holder of a permission: one of the user's agents, or another key.
type grantee struct {
	agent string // "" for another key
	did   string
	name  string // by which sites call another key; "" for none
}

// called returns the grantee as sentences name it.
func (g grantee) called() string {
	if g.agent != "" {
		return "your agent " + g.agent
	}
	return g.did
}

// granteeNamed returns the grantee with a did:key, or the user's agent of that name.
func (a *app) granteeNamed(text string) (grantee, error) {
	if id, err := identity.Parse(text); err == nil {
		return grantee{did: id.String()}, nil
	}
	mine, err := peer.Agents()
	if err != nil {
		return grantee{}, err
	}
	i := slices.IndexFunc(mine, func(m peer.Agent) bool { return m.Name == text })
	if i < 0 {
		return grantee{}, usagef("%q is neither a did:key nor an agent of yours: "+
			"agentsite identity --card - prints a person's key, and "+
			"agentsite agents allow --agent %s creates an agent", text, safeWord(text, "NAME"))
	}
	return grantee{agent: text, did: mine[i].DID}, nil
}

func (f *fleetFlags) allowCommand() *cobra.Command {
	var until, name string
	cmd := &cobra.Command{
		Use: "allow KEY|AGENT PERMISSION", Args: exactly("KEY or AGENT", "PERMISSION"),
		Short: "Give a key or an agent of yours a permission at your sites",
		Long: permissionHelp + `

Without --sites and --tag the permission is for all sites that you own, and for those that you
claim later. It replaces what you gave the same key there before. With --json, "grant" in each
line is the text for the holder of another key, who stores it with "agentsite accept".

A permission that only reads ends after 90 days, any other after 7 days, unless --until says
otherwise. "agentsite fleet revoke" ends it.`,
		Example: "  agentsite fleet allow nightwatch 'read *' --until never\n" +
			"  agentsite fleet allow did:key:z6Mk… 'read climate/*' --sites 'green*'",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.GrantUntil(until, args[1])
			if err != nil {
				return err
			}
			return f.command(func(ctx context.Context, r *fleetRun, args []string) error {
				to, err := r.granteeNamed(args[0])
				if err != nil {
					return err
				}
				to.name = name
				return r.allow(ctx, cmd, to, args[1], end)
			})(cmd, args)
		},
		ValidArgsFunction: completeGrantee,
	}
	untilFlag(cmd, &until, "")
	nameFlag(cmd, &name, "what the holder of another key is called at the sites")
	return cmd
}

// givenResult describes the permission that a site stored.
type givenResult struct {
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
	Grant string    `json:"grant,omitzero"` // the text for the holder of another key
}

func (r *fleetRun) allow(ctx context.Context, cmd *cobra.Command, to grantee, words string, until time.Time) error {
	may, err := access.ParsePermissions(words)
	if err != nil {
		return usagef("%w", err)
	}
	if slices.ContainsFunc(may, access.Permission.Answers) {
		return usagef("use approve is for your phone: agentsite grant phone --site NAME gives it that")
	}
	if to.agent == "" {
		if err := r.checkNotSite(to.did, "", ""); err != nil {
			return err
		}
	}
	words = access.FormatPermissions(may)
	give := func(ctx context.Context, c *peer.Connection, k peer.Contact) (givenResult, error) {
		link, err := giveOn(ctx, r.user, c, k, to, words, until)
		return givenResult{words, until, link}, err
	}
	results, err := callFleet(ctx, r, fleet.Options{Changes: true}, give)
	if err != nil {
		return err
	}
	cells := func(a givenResult) [][]string { return [][]string{{"done", a.May, endTime(a.Until)}} }
	if err := showFleet(r, results, "", []string{"SITE", "STATE", "MAY", "UNTIL"}, cells); err != nil {
		return err
	}
	if r.all {
		if err := rememberEverywhere(r.user, to, words, until); err != nil {
			return err
		}
		r.note("%s gets this on sites that you claim later, too, %s", to.called(), lasts(until, cmd))
	}
	return fleetOutcome(results, nil)
}

// rememberEverywhere stores a permission for sites that the user claims later.
func rememberEverywhere(user peer.Person, to grantee, words string, until time.Time) error {
	if to.agent != "" {
		return user.SetGlobalPermission(peer.GlobalPermission{Agent: to.agent, May: words, Until: until})
	}
	return user.KeyGrants().Set(peer.KeyGrant{To: to.did, Name: to.name, May: words, Until: until})
}

// giveOn gives a permission on one site, and returns the text for the holder of another key.
func giveOn(
	ctx context.Context, user peer.Person, c *peer.Connection, k peer.Contact, to grantee, words string, until time.Time,
) (link string, err error) {
	deposit := func(signed acts.Signed) error {
		_, err := ownerclient.Call(ctx, c.Owner, acts.GrantAct, signed)
		return err
	}
	switch {
	case to.agent != "":
		return "", user.Allow(to.agent, k, words, until, deposit)
	case !k.Owner:
		return user.Delegate(k.Name, to.did, words, until)
	}
	known, err := c.Owner.Access(ctx)
	if err != nil {
		return "", err
	}
	signed, link, err := ownerclient.SignGrant(known, peer.OwnerKey, to.did, to.name, words, until)
	if err != nil {
		return "", err
	}
	signed.Replace = true
	return link, deposit(signed)
}

func (f *fleetFlags) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY|AGENT", Args: exactly("KEY or AGENT"),
		Short: "End all permissions of a key or an agent of yours at your sites",
		Long: `End all permissions of a key or an agent of yours at your sites, at once: outputs that its
holder moved return to their safe values. Without --sites and --tag it gets none on sites that
you claim later, either. A site that does not answer is named: run the command again then.`,
		Example: "  agentsite fleet revoke nightwatch\n  agentsite fleet revoke did:key:z6Mk… --sites shed",
		RunE: f.command(func(ctx context.Context, r *fleetRun, args []string) error {
			from, err := r.granteeNamed(args[0])
			if err != nil {
				return err
			}
			if r.all { // first: a site that is claimed meanwhile must not get it
				if err := forgetEverywhere(r.user, from); err != nil {
					return err
				}
			}
			take := func(ctx context.Context, c *peer.Connection, _ peer.Contact) (revokedResult, error) {
				return takeFrom(ctx, c, from.did)
			}
			results, err := callFleet(ctx, r, fleet.Options{Changes: true}, take)
			if err != nil {
				return err
			}
			cells := func(e revokedResult) [][]string { return [][]string{{"done", strings.Join(e.Had, "; ")}} }
			if err := showFleet(r, results, "", []string{"SITE", "STATE", "HAD"}, cells); err != nil {
				return err
			}
			return fleetOutcome(results, nil)
		}),
		ValidArgsFunction: completeGrantee,
	}
}

func forgetEverywhere(user peer.Person, from grantee) error {
	if from.agent != "" {
		return user.RemoveGlobalPermission(from.agent)
	}
	return user.KeyGrants().Remove(from.did)
}

// revokedResult holds the permissions that a key had at a site.
type revokedResult struct {
	Had []string `json:"had"`
}

// takeFrom ends all permissions of a key at a site, also the ones that the site does not list: delegations of others,
// and grants that the key has not presented yet.
func takeFrom(ctx context.Context, c *peer.Connection, did string) (revokedResult, error) {
	all := revokedResult{Had: []string{}}
	known, err := c.Owner.Access(ctx)
	if err != nil {
		return all, err
	}
	for _, g := range known.Grants {
		if g.To == did && g.Token == "" {
			all.Had = append(all.Had, strings.Join(g.May, "; of that "))
		}
	}
	_, err = ownerclient.Call(ctx, c.Owner, acts.RevokeAct, acts.Name{Name: did})
	return all, err
}

// completeGrantee completes to the user's agents, for the first argument.
func completeGrantee(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeAgents(cmd, args, word)
}
