package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

// agentPermission holds the permission of one of the user's agents on a site.
type agentPermission struct {
	Agent string    `json:"agent"`
	Site  string    `json:"site"`
	May   string    `json:"may,omitzero"` // as the site says; "" for nothing
	Until time.Time `json:"until,omitzero"`
	Says  string    `json:"says,omitzero"` // why it is as it was given, or nothing
}

// on returns a copy of a for another site, as an agent of the user's or, for "", the user.
func (a *app) on(site, as string) *app {
	b := *a
	b.site, b.as, b.peer, b.data, b.url, b.errs = site, as, "", "", "", io.Discard
	return &b
}

// agentPermissions asks the sites, several at once, what the user's agents may do there. A site that
// does not answer is listed with what this machine has stored.
func (a *app) agentPermissions(ctx context.Context, yours []peer.Agent) ([]agentPermission, error) {
	user, err := peer.User()
	if err != nil {
		return nil, err
	}
	known, err := user.Contacts().List()
	if err != nil {
		return nil, err
	}
	owned := make(map[string]func() (ownerclient.Access, error)) // by DID
	only := ""
	for _, k := range known {
		if k.Name == a.site {
			only = k.DID
		}
		if k.Owner {
			owned[k.DID] = sync.OnceValues(func() (all ownerclient.Access, err error) {
				err = a.on(k.Name, "").with(func(s *session) (err error) {
					all, err = askOwner(ctx, s, s.Owner.Access)
					return err
				})
				return all, err
			})
		}
	}
	const atOnce = 8
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	var rows []*[]agentPermission
	for _, mine := range yours {
		for _, k := range mine.Sites {
			if a.site != "" && k.DID != only {
				continue
			}
			row := new([]agentPermission)
			rows = append(rows, row)
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				*row = a.permissionsOn(ctx, mine, k, owned[k.DID])
			})
		}
	}
	wait.Wait()
	var all []agentPermission
	for _, row := range rows {
		all = append(all, *row...)
	}
	return all, nil
}

// permissionsOn asks a site what an agent may do there: as its owner with access or, where that is
// nil, as the agent, whose grant the site takes or refuses.
func (a *app) permissionsOn(ctx context.Context, mine peer.Agent, k peer.Contact, access func() (ownerclient.Access, error)) (rows []agentPermission) {
	stored := agentPermission{Agent: mine.Name, Site: k.Name}
	stored.May, stored.Until = k.Permission()
	var all ownerclient.Access
	var err error
	if access != nil {
		all, err = access()
	} else {
		err = a.on(k.Name, mine.Name).with(func(s *session) error {
			_, err := askOwner(ctx, s, func(ctx context.Context) (acts.Reached, error) { return s.Owner.Present(ctx, k.Grant) })
			return err
		})
	}
	var refused *client.RequestError
	switch {
	case access == nil && errors.As(err, &refused):
		return []agentPermission{{Agent: mine.Name, Site: k.Name, Says: "the site refuses its grant"}}
	case err != nil:
		stored.Says = "as it was given: the site does not say"
		return []agentPermission{stored}
	case access == nil:
		return []agentPermission{stored}
	}
	for _, g := range all.Grants {
		if g.To == mine.DID && g.Token == "" && (g.Until.IsZero() || g.Until.After(all.Time)) {
			rows = append(rows, agentPermission{Agent: mine.Name, Site: k.Name, May: strings.Join(g.May, "; of that "), Until: g.Until})
		}
	}
	if rows == nil {
		rows = []agentPermission{{Agent: mine.Name, Site: k.Name, Says: "the site has no permission of it"}}
	}
	return rows
}

func (p agentPermission) cells() []string {
	may, until := clean(cmp.Or(p.May, "nothing")), ""
	if p.May != "" {
		until = endTime(p.Until)
	}
	if p.Says != "" {
		may += " (" + p.Says + ")"
	}
	return []string{p.Agent, p.Site, may, until}
}

func (a *app) forbidCommand() *cobra.Command {
	return &cobra.Command{
		Use: "forbid AGENT", Short: "Take all permissions from an agent of yours, on one site or on all", Args: exactly("AGENT"),
		Long: `Take all permissions from an agent of yours, with --site on that site. Outputs that it
moved return to their safe values, its open connections see nothing more, and it gets no
permission on sites that you claim later. A site that cannot be reached is named: run the
command again then.`,
		Example: "  agentsite agents forbid nightwatch\n  agentsite agents forbid assistant --site shed",
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.url != "" || a.data != "" || a.as != "" {
				return usagef("agents forbid takes no --url, --data or --as: it is for sites that you know")
			}
			return a.forbid(cmd.Context(), args[0])
		},
		ValidArgsFunction: completeAgents,
	}
}

// forbid ends an agent's permissions on each site, also after one fails.
func (a *app) forbid(ctx context.Context, name string) error {
	user, err := peer.User()
	if err != nil {
		return err
	}
	person, err := peer.PersonNamed(name)
	if err != nil {
		return err
	}
	yours, err := peer.Agents()
	if err != nil {
		return err
	}
	known, err := user.Contacts().List()
	if err != nil {
		return err
	}
	if a.site == "" {
		if err := user.RemoveGlobalPermission(name); err != nil {
			return err
		}
	}
	mine := yours[slices.IndexFunc(yours, func(y peer.Agent) bool { return y.Name == name })]
	sites := slices.DeleteFunc(known, func(k peer.Contact) bool { return !k.Owner })
	for _, k := range mine.Sites {
		if !slices.ContainsFunc(sites, func(o peer.Contact) bool { return o.DID == k.DID }) {
			sites = append(sites, k)
		}
	}
	if a.site != "" {
		sites = slices.DeleteFunc(sites, func(k peer.Contact) bool { return k.Name != a.site })
		if len(sites) == 0 {
			return usagef("%s knows no site %s: agentsite agents lists what your agents may do", name, a.site)
		}
	}
	for _, k := range sites {
		i := slices.IndexFunc(mine.Sites, func(m peer.Contact) bool { return m.DID == k.DID })
		had, failed := i >= 0, error(nil)
		if k.Owner {
			var ended bool
			ended, failed = a.revokeAgent(ctx, mine.DID, k.Name)
			had = had || ended
		} else {
			failed = a.withdraw(ctx, name, k.Name)
		}
		if failed == nil && i >= 0 {
			failed = person.Contacts().Forget(mine.Sites[i].Name)
		}
		switch {
		case failed != nil:
			a.note("%s: %v", k.Name, failed)
			err = errors.Join(err, failed)
		case had:
			a.say("%s may do nothing on %s any more", name, k.Name)
		}
	}
	if err != nil {
		return coded{exitCode(err), errors.New(name + " may still do something, where a site could not be told")}
	}
	return nil
}

// revokeAgent ends all permissions of a key on a site of the user's, listed there or not, and reports whether there
// were any.
func (a *app) revokeAgent(ctx context.Context, did, site string) (any bool, _ error) {
	return any, a.on(site, "").with(func(s *session) error {
		all, err := askOwner(ctx, s, s.Owner.Access)
		if err != nil {
			return err
		}
		any = slices.ContainsFunc(all.Grants, func(g acts.Granted) bool { return g.To == did })
		_, err = callOwner(ctx, s, acts.RevokeAct, acts.Name{Name: did})
		return err
	})
}

// withdraw has a site of somebody else's drop what an agent of the user's presented there.
func (a *app) withdraw(ctx context.Context, agent, site string) error {
	return a.on(site, agent).with(func(s *session) error {
		_, err := askOwner(ctx, s, func(ctx context.Context) (acts.Reached, error) { return s.Owner.Present(ctx, nil) })
		var refused *client.RequestError
		if errors.As(err, &refused) { // it has presented none
			return nil
		}
		return err
	})
}
