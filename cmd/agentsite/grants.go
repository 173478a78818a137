package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
)

const wordsHelp = `A permission in words is VERB PLACES and what limits it; several are divided by commas:

  read climate/*
  set fan+vent 0..80 max 10m 10/h confirm
  stop

VERB is read, set, show, capture or stop; "use TOOL on PLACES" is any other tool. PLACES
are points, devices, or * for all. 0..80 is what may be set, max 10m for how long at a
time, 10/h how often, and confirm has an owner approve each call.`

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", GroupID: groupAgents, Args: noArgs,
		Short: "Make, list and revoke tokens with permissions of their own",
		Long: `A token lets a client that knows nothing else than bearer tokens do what you permit it,
and no more: over HTTP it sees no other tool and no other point.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenAddCommand(),
		&cobra.Command{
			Use: "list", Args: noArgs, Short: "List the tokens",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.ownersSession("token", func(s *session) error {
					return s.showGrants(cmd.Context(), func(g owner.Granted) bool { return g.Token != "" })
				})
			},
			ValidArgsFunction: cobra.NoFileCompletions,
		},
		&cobra.Command{
			Use: "revoke NAME", Args: exactly("NAME"), Short: "End a token and what is held by it, at once",
			RunE:              func(cmd *cobra.Command, args []string) error { return a.revoke(cmd.Context(), args[0]) },
			ValidArgsFunction: a.completeGrants,
		})
	return cmd
}

func (a *app) tokenAddCommand() *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use: "add NAME PERMISSION", Args: exactly("NAME", "PERMISSION"),
		Short: "Make a token, and print it this once",
		Long: wordsHelp + `

The token is printed once and kept nowhere. It counts at this site's address, and ends
after 24 hours unless --until says otherwise.`,
		Example: "  agentsite token add kitchen 'read climate/*'\n  agentsite token add fan 'read *, set fan max 10m 10/h' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.TokenUntil(until)
			if err != nil {
				return err
			}
			return a.ownersSession("token", func(s *session) error {
				m, err := s.addToken(cmd.Context(), args[0], args[1], end)
				if err != nil {
					return err
				}
				s.warnOfIdle(cmd.Context(), args[1])
				if m.Owner != "" {
					fmt.Fprintf(a.errs, "agentsite: this site had no owner yet; it is yours now, by the key %s\n", clean(m.Owner))
				}
				if a.json {
					return a.printJSON(m)
				}
				fmt.Fprintf(a.errs, "agentsite: the token %s may %s, %s; it is shown this once\n", clean(args[0]), clean(args[1]), lasts(end, cmd))
				return a.say("%s", m.Token)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&until, "until", "24h", "when it ends: 12h, 30d, tomorrow, fri, 2026-12-24, 2026-12-24T18:00:00Z, never")
	cmd.RegisterFlagCompletionFunc("until", cobra.NoFileCompletions)
	return cmd
}

func (a *app) grantCommand() *cobra.Command {
	var until string
	var toSite bool
	cmd := &cobra.Command{
		Use: "grant DID PERMISSION", GroupID: groupAgents, Args: exactly("DID", "PERMISSION"),
		Short: "Permit a key something",
		Long: wordsHelp + `

The key is another user's, as their "agentsite identity --card -" prints it, or an agent's.
You sign the permission, and the site keeps it. What is printed is for the key's holder:
"agentsite accept" takes it. It is no secret.

A permission to read ends after 90 days, any other after seven, unless --until says
otherwise.`,
		Example: "  agentsite grant did:key:z6Mk… 'read climate/*, set fan max 10m 10/h' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.GrantUntil(until, args[1])
			if err != nil {
				return err
			}
			return a.ownersSession("grant", func(s *session) error {
				all, err := s.access(cmd.Context())
				if err == nil && !toSite {
					err = a.notASite(args[0], all.Site, meant)
				}
				if err != nil {
					return err
				}
				signed, pass, err := ownerclient.SignGrant(all, peer.OwnerKey, args[0], args[1], end)
				if err != nil {
					return err
				}
				if err := s.own(cmd.Context(), func(ctx context.Context) error { return s.Owner.AddGrant(ctx, signed) }); err != nil {
					return err
				}
				s.warnOfIdle(cmd.Context(), args[1])
				return a.showPass(cmd, pass, args[0], args[1], end)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&until, "until", "", "when it ends: 12h, 30d, tomorrow, fri, 2026-12-24, 2026-12-24T18:00:00Z, never")
	cmd.RegisterFlagCompletionFunc("until", cobra.NoFileCompletions)
	toSiteFlag(cmd, &toSite)
	return cmd
}

func toSiteFlag(cmd *cobra.Command, toSite *bool) {
	cmd.Flags().BoolVar(toSite, "to-site", false, "the key is a site's, and that is meant")
}

const meant = "; with --to-site it is taken all the same"

// notASite refuses a key that is a site's, which somebody took for their own.
func (a *app) notASite(did, also, unless string) error {
	folder, err := a.siteFolder()
	if err != nil {
		return err
	}
	whose, err := peer.DescribeSite(did, folder)
	if err == nil && whose == "" && did == also {
		whose = "this site"
	}
	if whose == "" {
		return err
	}
	return usagef("this is the key of %s, not of a person or an agent, who has theirs from agentsite identity --card -%s", whose, unless)
}

func (a *app) delegateCommand() *cobra.Command {
	var until string
	var toSite bool
	cmd := &cobra.Command{
		Use: "delegate SITE DID PERMISSION", GroupID: groupAgents, Args: exactly("SITE", "DID", "PERMISSION"),
		Short: "Pass a part of what you were granted on to another key",
		Long: `Pass a part of what you were granted on a site on to another key, without asking anybody.
What you may not do, it may not either, and both count against the same rate. When your
permission ends or is revoked, so does what you passed on. What is printed is for the
key's holder: "agentsite accept" takes it.`,
		Example: "  agentsite delegate shed did:key:z6Mk… 'read climate/*' --until fri",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.claims("delegate"); err != nil {
				return err
			}
			end, err := ownerclient.GrantUntil(until, args[2])
			if err == nil && !toSite {
				err = a.notASite(args[1], "", meant)
			}
			if err != nil {
				return err
			}
			user, err := peer.User()
			if err != nil {
				return err
			}
			pass, err := user.Delegate(args[0], args[1], args[2], end)
			if err != nil {
				return err
			}
			return a.showPass(cmd, pass, args[1], args[2], end)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeSites(cmd, args, word)
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "when it ends: 12h, 30d, tomorrow, fri, 2026-12-24, 2026-12-24T18:00:00Z, never")
	cmd.RegisterFlagCompletionFunc("until", cobra.NoFileCompletions)
	toSiteFlag(cmd, &toSite)
	return cmd
}

type passResult struct {
	To    string    `json:"to"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
	Pass  string    `json:"grant"`
}

func (a *app) showPass(cmd *cobra.Command, pass, to, may string, until time.Time) error {
	if a.json {
		return a.printJSON(passResult{to, may, until, pass})
	}
	fmt.Fprintf(a.errs, "agentsite: %s may %s, %s; its holder runs agentsite accept with this:\n", clean(to), clean(may), lasts(until, cmd))
	return a.say("%s", pass)
}

func (a *app) grantsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grants", GroupID: groupAgents, Args: noArgs,
		Short: "List who may do what, until when",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ownersSession("grants", func(s *session) error {
				return s.showGrants(cmd.Context(), func(owner.Granted) bool { return true })
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func (a *app) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", GroupID: groupAgents, Args: exactly("NAME"),
		Short: "End a permission and what is held by it, at once",
		Long: `End a token by its name, a grant by its ID with all that was passed on from it, or by a
did:key all that its holder has. Outputs that are held by it go to safe, subscriptions
end, and the next call is refused.`,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.revoke(cmd.Context(), args[0]) },
		ValidArgsFunction: a.completeGrants,
	}
}

func (a *app) clockCommand() *cobra.Command {
	var set, back bool
	cmd := &cobra.Command{
		Use: "clock", GroupID: groupAgents, Args: noArgs,
		Short: "Show what time the site takes it to be, and have it believe yours",
		Long: `A board without a battery does not know the time after a start, until something on its
network or one of its owners tells it. What may act until a time is refused meanwhile,
unless the configuration says "clock: last-known". A network is not believed that is more
than a week ahead of what was known, or a day behind. An owner's agentsite tells the time
with every command with --site; on the site's own machine, --set says that this machine's
clock is right. The time goes forward only, but for --set --back on that machine, after
which permissions count again that ended between.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ownersSession("clock", func(s *session) error {
				now := time.Now()
				if set || back {
					err := s.own(cmd.Context(), func(ctx context.Context) error { _, err := s.Owner.SetTime(ctx, now, back); return err })
					if err != nil {
						return err
					}
				}
				all, err := s.access(cmd.Context())
				switch ahead := all.Time.Sub(now); {
				case err != nil:
					return err
				case set && !back && ahead > time.Minute:
					return fmt.Errorf("the site's time is %s, ahead of this machine's, %s, and does not go back by itself; if yours is right, run agentsite clock --set --back on the site's own machine", local(all.Time), local(now))
				case a.json:
					return a.printJSON(clockResult{all.Time, all.Sure, all.Off})
				case all.Off != 0:
					return a.say("not known: at least %s. The site's machine says %s, which is too far from that to be believed; if it is right, run agentsite clock --set there", local(all.Time), local(all.Time.Add(time.Duration(all.Off*float64(time.Second)))))
				case all.Sure:
					return a.say("%s", local(all.Time))
				}
				return a.say("not known: at least %s. Set it with agentsite clock --set on the site's own machine", local(all.Time))
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&set, "set", false, "have the site believe this machine's clock")
	cmd.Flags().BoolVar(&back, "back", false, "with --set, also where that is earlier; on the site's own machine")
	return cmd
}

type clockResult struct {
	Time time.Time `json:"time"`
	Sure bool      `json:"time_is_known"`
	Off  float64   `json:"machine_ahead_seconds,omitzero"`
}

// ownersSession is with for what only owners can do.
func (a *app) ownersSession(what string, do func(*session) error) error {
	if err := a.owners(what); err != nil {
		return err
	}
	return a.with(do)
}

// own calls an owner's method within patience.
func (s *session) own(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.app.unreached(call(ctx))
}

func (s *session) access(ctx context.Context) (all ownerclient.Access, err error) {
	err = s.own(ctx, func(ctx context.Context) error { all, err = s.Owner.Access(ctx); return err })
	if err != nil {
		return all, err
	}
	s.app.warnOfEnds(all)
	if !all.Sure && !all.LastKnown && len(all.Grants) > 0 {
		fmt.Fprintln(s.app.errs, "agentsite: this site does not know the time yet, and refuses what may act until a time; agentsite clock --help says more")
	}
	return all, nil
}

// soon is when an owner is told that a grant ends.
const soon = 48 * time.Hour

// warnOfEnds says which grants end soon, and how each is renewed. A token ends soon as a
// rule.
func (a *app) warnOfEnds(all ownerclient.Access) {
	for _, g := range all.Grants {
		left := g.Until.Sub(all.Time)
		if renewal, ok := ownerclient.Renewal(g); ok && !g.Until.IsZero() && left > 0 && left <= soon {
			fmt.Fprintf(a.errs, "agentsite: a grant ends %s; this renews it: %s %s\n", local(g.Until), a.again(), renewal)
		}
	}
}

// addToken signs a permission, and has the site make a token of it.
func (s *session) addToken(ctx context.Context, name, words string, until time.Time) (m owner.MadeToken, err error) {
	all, err := s.access(ctx)
	if err != nil {
		return m, err
	}
	signed, err := ownerclient.SignToken(all, peer.OwnerKey, name, words, until)
	if err != nil {
		return m, err
	}
	err = s.own(ctx, func(ctx context.Context) error { m, err = s.Owner.AddToken(ctx, signed); return err })
	return m, err
}

// warnOfIdle says what of a permission is about nothing that the site has: it was misspelt,
// or is not wired up yet.
func (s *session) warnOfIdle(ctx context.Context, words string) {
	res, err := s.call(ctx, "list_points", nil)
	var list pointsResult
	if err != nil || json.Unmarshal(res.JSON, &list) != nil {
		return // it was permitted, and more is not said
	}
	kinds := make(map[string]string)
	for _, p := range list.Points {
		kinds[p.Point] = p.Kind
	}
	for _, idle := range access.Unmatched(words, kinds) {
		_, place, _ := strings.Cut(idle, " ")
		near := ""
		for _, p := range list.Points {
			if strings.HasSuffix(p.Point, "/"+place) {
				near = "; did you mean " + clean(p.Point) + "?"
			}
		}
		fmt.Fprintf(s.app.errs, "agentsite: this site has nothing that %s is about%s agentsite points lists what there is\n", idle, cmp.Or(near, ":"))
	}
}

func (s *session) showGrants(ctx context.Context, wanted func(owner.Granted) bool) error {
	all, err := s.access(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, g := range all.Grants {
		if !wanted(g) {
			continue
		}
		if s.app.json {
			if err := s.app.printJSON(g); err != nil {
				return err
			}
			continue
		}
		who, until := g.To, strings.TrimPrefix(ends(g.Until), "until ")
		if g.Token != "" {
			who = "token " + g.Token
		}
		if !g.Until.IsZero() && !g.Until.After(all.Time) {
			until += " (over)"
		}
		rows = append(rows, []string{who, strings.Join(g.May, "; and of that "), until, g.ID})
	}
	switch {
	case s.app.json:
		return nil
	case len(rows) == 0:
		return s.app.say("nobody but you has a permission of their own")
	}
	return table(s.app.out, []string{"WHO", "MAY", "UNTIL", "ID"}, rows)
}

type revokedResult struct {
	Revoked string `json:"revoked"`
}

func (a *app) revoke(ctx context.Context, name string) error {
	return a.ownersSession("revoke", func(s *session) error {
		if err := s.own(ctx, func(ctx context.Context) error { return s.Owner.Revoke(ctx, name) }); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(revokedResult{name})
		}
		return a.say("%s is revoked; what was held by it goes to safe", name)
	})
}

// local is a time as people here write it.
func local(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func (a *app) completeGrants(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 && a.url == "" {
		ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
		defer cancel()
		a.with(func(s *session) error {
			all, err := s.access(ctx)
			for _, g := range all.Grants {
				name := g.Token
				if name == "" {
					name = g.ID
				}
				names = append(names, cobra.CompletionWithDesc(clean(name), clean(strings.Join(g.May, "; "))))
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
