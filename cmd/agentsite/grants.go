package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/agents/op"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/anp/did"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

const permissionHelp = `PERMISSION is VERB PLACES LIMITS; commas separate several:

  read climate/*
  set fan+vent 0..80 max 10m 10/h confirm
  stop

VERB is read, set, show, capture, stop or ask (of agents); "use TOOL on PLACES" is for any other tool.
PLACES are points, devices, or * for all. Of the limits, 0..80 is the range that may be
set, max 10m the time of one move, 10/h the rate, and confirm makes an owner approve each
call.`

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", GroupID: groupOwner, Args: noArgs,
		Short: "Create, list and revoke tokens with permissions of their own",
		Long: `Create, list and revoke tokens. A token gives a client that uses bearer tokens exactly the
permissions that you choose. Over HTTP it sees no other tools and points.`,
		RunE: help,
	}
	cmd.AddCommand(a.tokenAddCommand(), a.tokenChangeCommand(),
		&cobra.Command{
			Use: "list", Args: noArgs, Short: "List the tokens",
			RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
				return s.showGrants(ctx, func(g acts.Granted) bool { return g.Token != "" })
			}),
		},
		&cobra.Command{
			Use: "revoke NAME", Args: exactly("NAME"), Short: "Revoke a token and end its leases at once",
			RunE: a.asOwner(revoke), ValidArgsFunction: a.completeGrants,
		})
	return cmd
}

func (a *app) tokenAddCommand() *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use: "add NAME PERMISSION", Args: exactly("NAME", "PERMISSION"),
		Short: "Create a token and print it once",
		Long: permissionHelp + `

The token is printed once and stored nowhere. It is valid at this site's address, and
ends after 24 hours unless --until says otherwise.`,
		Example: "  agentsite token add kitchen 'read climate/*'\n  agentsite token add fan 'read *, set fan max 10m 10/h' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.TokenUntil(until)
			if err != nil {
				return err
			}
			return a.asOwner(func(ctx context.Context, s *session, args []string) error {
				m, err := s.addToken(ctx, args[0], args[1], end)
				if err != nil {
					return err
				}
				s.warnOfUnmatched(ctx, args[1])
				if m.Owner != "" {
					a.note("this site had no owner; you own it now, with the key %s", m.Owner)
				}
				if !a.json {
					a.note("the token %s may %s, %s; it is not shown again", args[0], args[1], lasts(end, cmd))
				}
				return a.print(m, "%s", m.Token)
			})(cmd, args)
		},
	}
	untilFlag(cmd, &until, "24h")
	return cmd
}

func (a *app) grantCommand() *cobra.Command {
	var until, name string
	var toSite bool
	cmd := &cobra.Command{
		Use: "grant DID PERMISSION", GroupID: groupOwner, Args: exactly("DID", "PERMISSION"),
		Short: "Grant a permission to a key",
		Long: permissionHelp + `

DID is the key of a person, as "agentsite identity --card -" prints it, or of an agent.
You sign the grant, and the site stores it. The text that is printed is for the holder of
the key, who stores it with "agentsite accept". It is not secret.

Of a did:wba the key is granted that its document has now, which is fetched from its
domain.

A permission that only reads ends after 90 days, any other after 7 days, unless --until
says otherwise.`,
		Example: "  agentsite grant did:key:z6Mk… 'read climate/*, set fan max 10m' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.GrantUntil(until, args[1])
			if err != nil {
				return err
			}
			return a.asOwner(func(ctx context.Context, s *session, args []string) error {
				if strings.HasPrefix(args[0], "did:wba:") {
					key, err := did.Lookup(ctx, args[0])
					if err != nil {
						return state.Mistake{Err: err}
					}
					name, _ := did.Split(args[0])
					a.note("the key of %s is %v; for its signatures by ANP, the site needs %[1]s under http: callers:", name, key)
					args[0] = key.String()
				}
				all, err := s.access(ctx)
				if err == nil && !toSite {
					err = a.checkNotSite(args[0], all.Site, toSiteHint)
				}
				if err != nil {
					return err
				}
				signed, link, err := ownerclient.SignGrant(all, peer.OwnerKey, args[0], name, args[1], end)
				if err != nil {
					return err
				}
				if _, err := callOwner(ctx, s, acts.GrantAct, signed); err != nil {
					return err
				}
				s.warnOfUnmatched(ctx, args[1])
				if g, err := access.ParseGrant(signed.Grant); err == nil {
					s.noteOthers(ctx, g.Audience().String(), g.ID().String())
				}
				return a.showGrant(cmd, grantResult{args[0], name, args[1], end, link})
			})(cmd, args)
		},
	}
	untilFlag(cmd, &until, "")
	nameFlag(cmd, &name, "what the holder of the key is called here")
	toSiteFlag(cmd, &toSite)
	cmd.AddCommand(a.grantPhoneCommand())
	return cmd
}

func toSiteFlag(cmd *cobra.Command, toSite *bool) {
	cmd.Flags().BoolVar(toSite, "to-site", false, "accept the key of a site")
}

const toSiteHint = "; --to-site accepts it"

// checkNotSite refuses a key that is a site's. siteDID is another key that is a site's.
func (a *app) checkNotSite(did, siteDID, hint string) error {
	folder, err := a.siteFolder()
	if err != nil {
		return err
	}
	site, err := peer.DescribeSite(did, folder)
	if err == nil && site == "" && did == siteDID {
		site = "this site"
	}
	if site == "" {
		return err
	}
	return usagef("this is the key of %s, not of a person or an agent, whose key agentsite identity --card - prints%s", site, hint)
}

func (a *app) delegateCommand() *cobra.Command {
	var until string
	var toSite bool
	cmd := &cobra.Command{
		Use: "delegate SITE DID PERMISSION", GroupID: groupOwner, Args: exactly("SITE", "DID", "PERMISSION"),
		Short: "Delegate a part of your permission to another key",
		Long: `Delegate a part of your permission on a site to another key. No connection is needed. The
key never gets more than you have, and both share your rate limit. When your permission
ends or is revoked, the delegation ends, too. The text that is printed is for the holder
of the key, who stores it with "agentsite accept".`,
		Example: "  agentsite delegate shed did:key:z6Mk… 'read climate/*' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asUser(func(_ context.Context, user peer.Person, args []string) error {
				end, err := ownerclient.GrantUntil(until, args[2])
				if err == nil && !toSite {
					err = a.checkNotSite(args[1], "", toSiteHint)
				}
				if err != nil {
					return err
				}
				link, err := user.Delegate(args[0], args[1], args[2], end)
				if err != nil {
					return err
				}
				return a.showGrant(cmd, grantResult{To: args[1], May: args[2], Until: end, Grant: link})
			})(cmd, args)
		},
		ValidArgsFunction: a.completeSite,
	}
	untilFlag(cmd, &until, "")
	toSiteFlag(cmd, &toSite)
	return cmd
}

type grantResult struct {
	To    string    `json:"to"`
	Name  string    `json:"name,omitzero"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
	Grant string    `json:"grant"`
}

func (a *app) showGrant(cmd *cobra.Command, g grantResult) error {
	if !a.json {
		a.note("%s may %s, %s; its holder runs agentsite accept with this text:", g.To, g.May, lasts(g.Until, cmd))
	}
	return a.print(g, "%s", g.Grant)
}

func nameFlag(cmd *cobra.Command, name *string, what string) {
	cmd.Flags().StringVar(name, "name", "", what)
}

func (a *app) grantsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grants", GroupID: groupOwner, Args: noArgs,
		Short: "List tokens and grants, with their permissions and when they end",
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			return s.showGrants(ctx, func(acts.Granted) bool { return true })
		}),
	}
}

func (a *app) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", GroupID: groupOwner, Args: exactly("NAME"),
		Short: "Revoke a permission and end its leases at once",
		Long: `Revoke a token by its name, a grant with its delegations by its ID, or all permissions of
a phone or another key by its name or did:key. Outputs that its holder moved return to
their safe values, subscriptions end, and the next call is refused.`,
		RunE: a.asOwner(revoke), ValidArgsFunction: a.completeGrants,
	}
}

func revoke(ctx context.Context, s *session, args []string) error {
	name := args[0]
	if _, err := callOwner(ctx, s, acts.RevokeAct, acts.Name{Name: name}); err != nil {
		return err
	}
	return s.app.print(map[string]string{"revoked": name}, "%s is revoked; its outputs return to their safe values", name)
}

// callOwner calls an owner's method.
func callOwner[P, R any](ctx context.Context, s *session, method op.Name[P, R], params P) (R, error) {
	return askOwner(ctx, s, func(ctx context.Context) (R, error) { return ownerclient.Call(ctx, s.Owner, method, params) })
}

// askOwner runs call, which calls an owner's method, within the timeout of a call.
func askOwner[R any](ctx context.Context, s *session, call func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := call(ctx)
	return result, s.app.unreached(err)
}

// access asks for owners, grants and tokens, and warns of those that end soon.
func (s *session) access(ctx context.Context) (ownerclient.Access, error) {
	all, err := askOwner(ctx, s, s.Owner.Access)
	if err != nil {
		return all, err
	}
	s.app.warnOfExpiry(all)
	if len(all.Grants) > 0 {
		s.warnOfClock(all)
	}
	return all, nil
}

// warnOfClock warns of a site that refuses permissions that end.
func (s *session) warnOfClock(all ownerclient.Access) {
	if !all.Sure && !all.LastKnown {
		s.app.note("the site's clock is not set, so it refuses permissions that end at a time: see agentsite clock --help")
	}
}

// expiryWarning is how long before its end an owner is warned of a grant.
const expiryWarning = 48 * time.Hour

// warnOfExpiry prints how to renew the grants that end soon, but not tokens, which usually do.
func (a *app) warnOfExpiry(all ownerclient.Access) {
	for _, g := range all.Grants {
		left := g.Until.Sub(all.Time)
		if renewal, ok := ownerclient.Renewal(g); ok && !g.Until.IsZero() && left > 0 && left <= expiryWarning {
			a.note("a grant ends %s; to renew it: %s %s", local(g.Until), a.again(), renewal)
		}
	}
}

// addToken signs a permission and sends it to the site, which creates a token for it.
func (s *session) addToken(ctx context.Context, name, words string, until time.Time) (m acts.MadeToken, err error) {
	all, err := s.access(ctx)
	if err != nil {
		return m, err
	}
	signed, err := ownerclient.SignToken(all, peer.OwnerKey, name, words, until)
	if err != nil {
		return m, err
	}
	if len(all.Grants) == 0 && !until.IsZero() {
		s.warnOfClock(all)
	}
	return askOwner(ctx, s, func(ctx context.Context) (acts.MadeToken, error) { return s.Owner.AddToken(ctx, signed) })
}

// warnOfUnmatched warns of the parts of a permission that match no point and no agent. They may be
// misspelt, or for a device that is not connected yet.
func (s *session) warnOfUnmatched(ctx context.Context, words string) {
	points, err := s.listPoints(ctx)
	if err != nil {
		return // the permission is given all the same
	}
	kinds := make(map[string]string)
	for _, p := range points {
		kinds[p.Point] = string(p.Kind)
	}
	hosted, err := callOwner(ctx, s, acts.AgentsAct, acts.None{})
	if err != nil {
		return
	}
	for _, a := range hosted.Agents {
		kinds[a.Name] = access.KindAgent
	}
	for _, part := range access.Unmatched(words, kinds) {
		word, place, _ := strings.Cut(part, " ")
		if word == "ask" {
			s.app.note("no agent of this site is called %s; its configuration names them under agents:", place)
			continue
		}
		near := ""
		for _, p := range points {
			if strings.HasSuffix(p.Point, "/"+place) {
				near = "did you mean " + safeWord(p.Point, "another") + "? "
			}
		}
		s.app.note("no point of this site matches %s; %sagentsite points lists them", part, near)
	}
}

func (s *session) showGrants(ctx context.Context, wanted func(acts.Granted) bool) error {
	all, err := s.access(ctx)
	if err != nil {
		return err
	}
	var grants []acts.Granted
	for _, g := range all.Grants {
		if wanted(g) {
			grants = append(grants, g)
		}
	}
	return printList(s.app, grants, "No tokens or grants yet", []string{"WHO", "MAY", "UNTIL", "ID"}, func(g acts.Granted) []string {
		who, until := cmp.Or(holderName(all, g), g.To), endTime(g.Until)
		if g.Token != "" {
			who = tokenName(g)
		}
		if !g.Until.IsZero() && !g.Until.After(all.Time) {
			until += " (expired)"
		}
		return []string{who, strings.Join(g.May, "; of that "), until, g.ID}
	})
}

// tokenName names a token and, of a program that signed in, what that calls itself.
func tokenName(g acts.Granted) string {
	who := "token " + g.Token
	if g.Client != "" {
		who += fmt.Sprintf(" (%q, %s)", g.Client, g.Host)
	}
	if g.Former != "" {
		who += ", for the former address " + g.Former
	}
	return who
}

func (a *app) completeGrants(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		all, err := askOwner(ctx, s, s.Owner.Access)
		for _, g := range all.Grants {
			name := clean(cmp.Or(g.Token, g.Name, g.ID))
			names = append(names, cobra.CompletionWithDesc(name, clean(strings.Join(g.May, "; "))))
		}
		return names, err
	})
}
