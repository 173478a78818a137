package main

import (
	"errors"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"

	"github.com/spf13/cobra"
)

func (a *app) claimCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "claim ADDRESS", GroupID: groupAgents, Args: exactly("ADDRESS"),
		Short: "Own a site, by the address that it shows, or have one that is yours known here",
		Long: `A site that nobody owns shows an address for fifteen minutes after it was switched on: at
its terminal, in its log, and in the file agentsite-claim.txt in its data folder, or on its SD card.
Whoever shows first that they know it owns the site, by the key of "agentsite identity
--card -". The secret in it is not sent, and counts once.

A site that is yours already, by the card in its configuration or another owner's word,
needs no secret: ADDRESS is its name on this network, its did:key or peer ID, or the
address without a secret that it shows.

Afterwards --site NAME speaks to it from here.`,
		Example: "  agentsite claim agentsite://z6Mk…/…/192.168.1.20:8474\n  agentsite claim greenhouse",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.claims("claim"); err != nil {
				return err
			}
			user, err := peer.User()
			if err != nil {
				return err
			}
			k, code, err := user.Claim(cmd.Context(), args[0], name, a.target())
			if k.DID != "" { // it is owned, whatever failed then
				if err = errors.Join(a.showClaimed(k, code), err); err == nil {
					a.allowStanding(cmd.Context(), user, k)
				}
			}
			return a.unreached(err)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&name, "name", "", "what you call it (default: what it calls itself, with a number where you call another so)")
	cmd.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions)
	return cmd
}

func (a *app) showClaimed(k peer.Contact, code string) error {
	if a.json {
		return a.printJSON(claimResult{k, code})
	}
	if code == "" {
		return a.say("you own the site %s, and it is known here now: agentsite --site %[1]s points", k.Name)
	}
	if err := a.say("you own the site %s now: agentsite --site %[1]s points", k.Name); err != nil {
		return err
	}
	return a.say("should you lose your key, this code makes another the owner; write it down, it is shown this once: %s", code)
}

func (a *app) acceptCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "accept GRANT", GroupID: groupAgents, Args: exactly("GRANT"),
		Short: "Keep what you were granted on a site",
		Long: `Keep the text that "agentsite grant" or "agentsite delegate" printed for your key, which
"agentsite identity --card -" shows. Afterwards --site NAME speaks to that site.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.claims("accept"); err != nil {
				return err
			}
			user, err := peer.User()
			if err != nil {
				return err
			}
			k, err := user.Accept(args[0], name)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(k)
			}
			words, until := k.Permission()
			return a.say("on %s you may %s, %s: agentsite --site %[1]s points", k.Name, words, ends(until))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&name, "name", "", "what you call the site (default: what whoever granted it calls it)")
	cmd.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions)
	return cmd
}

// ends says until when; the zero time is for ever.
func ends(until time.Time) string {
	if until.IsZero() {
		return "for ever"
	}
	return "until " + local(until)
}

type claimResult struct {
	peer.Contact
	Recovery string `json:"recovery,omitzero"`
}

// claims refuses what says where a site is for a command that is told another way.
func (a *app) claims(what string) error {
	if a.url != "" || a.site != "" || a.peer != "" || a.data != "" {
		return usagef("%s takes no --site, --peer, --url or --data", what)
	}
	return nil
}

func (a *app) sitesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sites", GroupID: groupAgents, Args: noArgs,
		Short: "List the sites that you own or may use",
		RunE: func(*cobra.Command, []string) error {
			who, err := peer.PersonNamed(a.as)
			if err != nil {
				return err
			}
			all, err := who.Contacts().List()
			if err != nil {
				return err
			}
			var rows [][]string
			for _, k := range all {
				if a.json {
					if err := a.printJSON(k); err != nil {
						return err
					}
					continue
				}
				what := "all: you own it"
				if !k.Owner {
					words, until := k.Permission()
					what = words + ", " + ends(until)
				}
				rows = append(rows, []string{k.Name, what, strings.Join(k.Addresses, " "), k.DID})
			}
			switch {
			case a.json:
				return nil
			case len(rows) == 0:
				return a.say("you know no site yet: agentsite claim takes the address that one shows")
			}
			return table(a.out, []string{"SITE", "YOU MAY", "ADDRESSES", "KEY"}, rows)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(&cobra.Command{
		Use: "forget NAME", Args: exactly("NAME"), Short: "Forget a site; what you may do there stays",
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := peer.PersonNamed(a.as)
			if err != nil {
				return err
			}
			if err := who.Contacts().Forget(args[0]); err != nil {
				return err
			}
			return a.say("%s is forgotten", args[0])
		},
		ValidArgsFunction: a.completeSites,
	})
	return cmd
}

func (a *app) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if who, err := peer.PersonNamed(a.as); err == nil {
		all, _ := who.Contacts().List()
		for _, k := range all {
			names = append(names, k.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// lasts says until when, and how to have it another time where nobody said.
func lasts(until time.Time, cmd *cobra.Command) string {
	if cmd.Flags().Changed("until") {
		return ends(until)
	}
	return ends(until) + " (--until says otherwise)"
}
