package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) claimCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "claim ADDRESS", GroupID: groupOwner, Args: exactly("ADDRESS"),
		Short: "Become the owner of a site, by the address that it shows",
		Long: `Become the owner of a site, or add a site that you own to your list.

A site without an owner shows an ADDRESS for fifteen minutes after its start: in its
terminal, in its log, and in agentsite-claim.txt in its data folder or on its SD card. The
first person who uses it becomes the owner, with the key of "agentsite identity --card -".
The secret in the address is never sent, and works once.

For a site that you own already, by its configuration or through another owner, ADDRESS
is its name on this network, its did:key or peer ID, or its address without the secret.

Afterwards use --site NAME for this site.`,
		Example: "  agentsite claim agentsite://z6Mk…/…/192.168.1.20:8474\n  agentsite claim greenhouse",
		RunE: a.asUser(func(ctx context.Context, user peer.Person, args []string) error {
			_, err := a.claim(ctx, user, args[0], name)
			return a.unreached(err)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "your name for the site (default: its own, with a number if you use that already)")
	return cmd
}

// claimPatience bounds the tries of claim by default: the board may just be starting.
const claimPatience = 20 * time.Second

// claim makes the user the owner of a site, and says so with the recovery code.
func (a *app) claim(ctx context.Context, user peer.Person, address, name string) (peer.Contact, error) {
	before, err := user.Contacts().List()
	if err != nil {
		return peer.Contact{}, err
	}
	target := a.target()
	target.Wait = cmp.Or(target.Wait, claimPatience)
	var k peer.Contact
	var code string
	err = a.during("connecting to the site", func() (err error) {
		k, code, err = user.Claim(ctx, address, name, target)
		return err
	})
	if k.DID != "" { // the site is owned, also with an error
		had := slices.ContainsFunc(before, func(b peer.Contact) bool { return b.DID == k.DID && b.Owner })
		if err = errors.Join(a.showClaimed(k, code), err); err == nil && !had {
			a.allowGlobal(ctx, user, k)
		}
	}
	return k, err
}

func (a *app) showClaimed(k peer.Contact, code string) error {
	if a.json || code == "" {
		return a.print(claimResult{k, code}, "you own the site %s: agentsite --site %[1]s points", k.Name)
	}
	a.say("you are now the owner of the site %s: agentsite --site %[1]s points", k.Name)
	return a.say("write down this recovery code, which makes another key the owner if you lose yours; it is not shown again: %s", code)
}

type claimResult struct {
	peer.Contact
	Recovery string `json:"recovery,omitzero"`
}

func (a *app) acceptCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "accept GRANT", GroupID: groupOwner, Args: exactly("GRANT"),
		Short: "Store a grant that you were given",
		Long: `Store the text that "agentsite grant" or "agentsite delegate" printed for your key, which
"agentsite identity --card -" shows. Afterwards use --site NAME for that site.`,
		RunE: a.asUser(func(_ context.Context, user peer.Person, args []string) error {
			k, err := user.Accept(args[0], name)
			if err != nil {
				return err
			}
			words, until := k.Permission()
			return a.print(k, "on %s you may %s, %s: agentsite --site %[1]s points", k.Name, words, ends(until))
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "your name for the site (default: the name in the grant)")
	return cmd
}

// ends formats when a permission ends, in its last week also how soon; the zero time is never.
func ends(until time.Time) string {
	if until.IsZero() {
		return "forever"
	}
	text := "until " + local(until)
	switch left := time.Until(until); {
	case left <= 0 || left > lastWeek:
	case left > 2*24*time.Hour:
		text += fmt.Sprintf(", in %d days", int(left.Round(time.Hour)/(24*time.Hour)))
	default:
		text += ", in " + span(left.Seconds())
	}
	return text
}

// lastWeek is the time before its end in which a permission is shown with how soon it ends.
const lastWeek = 7*24*time.Hour + time.Minute

// lasts is ends, with a hint where --until was not given.
func lasts(until time.Time, cmd *cobra.Command) string {
	if cmd.Flags().Changed("until") {
		return ends(until)
	}
	return ends(until) + " (change it with --until)"
}

func (a *app) sitesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sites", GroupID: groupNetwork, Args: noArgs,
		Short: "List the sites that you own or may use",
		RunE: func(*cobra.Command, []string) error {
			person, err := peer.PersonNamed(a.as)
			if err != nil {
				return err
			}
			all, err := person.Contacts().List()
			if err != nil {
				return err
			}
			none := "you know no site yet: agentsite claim adds one, by the address that it shows"
			head := []string{"SITE", "TAGS", "YOU MAY", "ADDRESSES", "KEY"}
			return printList(a, all, none, head, func(k peer.Contact) []string {
				may := "all: you own it"
				if !k.Owner {
					words, until := k.Permission()
					may = words + ", " + ends(until)
				}
				return []string{k.Name, strings.Join(k.Tags, " "), may, strings.Join(k.Addresses, " "), k.DID}
			})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "forget NAME", Args: exactly("NAME"), Short: "Remove a site from the list; its permissions for you stay valid",
		RunE: func(_ *cobra.Command, args []string) error {
			person, err := peer.PersonNamed(a.as)
			if err != nil {
				return err
			}
			if err := person.Contacts().Forget(args[0]); err != nil {
				return err
			}
			return a.say("%s is removed from the list", args[0])
		},
		ValidArgsFunction: a.completeSite,
	}, a.tagSiteCommand(false), a.tagSiteCommand(true), a.connectSiteCommand())
	return cmd
}

// tagSiteCommand returns the command that gives a site tags, or with remove the one that takes them away.
func (a *app) tagSiteCommand(remove bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tag NAME TAG...", Short: "Give a site tags, by which agentsite fleet --tag chooses sites",
		Long: `Give a site tags, by which agentsite fleet --tag chooses sites. Tags are names. They are stored
on this computer, and the site does not know them.`,
		Example: "  agentsite sites tag shed garden unheated",
	}
	if remove {
		cmd.Use, cmd.Short, cmd.Long = "untag NAME TAG...", "Take tags from a site", ""
		cmd.Example = "  agentsite sites untag shed unheated"
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return exactly("NAME", "TAG")(cmd, args[:min(len(args), 2)])
	}
	cmd.RunE = a.asUser(func(_ context.Context, user peer.Person, args []string) error {
		k, err := user.Contacts().Tag(args[0], args[1:], remove)
		switch {
		case err != nil:
			return err
		case len(k.Tags) == 0:
			return a.print(k, "%s has no tags", k.Name)
		}
		return a.print(k, "%s has the tags %s", k.Name, strings.Join(k.Tags, ", "))
	})
	cmd.ValidArgsFunction = a.completeSite
	return cmd
}

func (a *app) connectSiteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "connect GRANT", Args: exactly("GRANT"), Short: "Give your site a grant of another site, for its agents",
		Long: `Store the text that "agentsite grant" printed on another site for the key of your site, which
"agentsite identity" shows. The agents of your site that name the other one may then ask it
what the grant, the entry with "kind: remote" and their own may: all permit.`,
		Example: "  agentsite sites connect agentsite://z6Mk…/grant.…/shed@192.168.1.20:8474",
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			c, err := callOwner(ctx, s, acts.ConnectAct, acts.Name{Name: args[0]})
			if err != nil {
				return err
			}
			return a.print(c, "the site's agents may %s on %s, %s: name it under agents: with kind: remote and peer: %s", clean(c.May), clean(c.Name), ends(c.Until), clean(c.DID))
		}),
	}
}

// completeSites completes to the names of sites.
func (a *app) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.knownSites(), cobra.ShellCompDirectiveNoFileComp
}

// completeSite is completeSites for the first argument alone.
func (a *app) completeSite(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeSites(cmd, args, word)
}
