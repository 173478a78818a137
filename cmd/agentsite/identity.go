package main

import (
	"fmt"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) identityCommand() *cobra.Command {
	var card string
	var certificate bool
	cmd := &cobra.Command{
		Use: "identity", GroupID: groupSite, Args: noArgs,
		Short: "Print who the site is, or make a card of who you are",
		Long: `Print the two names of the site's key, by which others know it: the peer ID and the
did:key. The key is made where there is none yet. Below is the did:key of you, who use
sites from here: that is what others grant something to, and never a site's.

With --certificate it is what curl, Node and others that know certificates only have to
trust to reach the site over HTTPS, also of one that --site names. It vouches for this
site alone, and is no secret.

With --card it is your own key, as an owner of sites. Its line for a site's
agentsite.yaml is written to a file, or printed for "-". The key itself stays on this
machine: whoever has it owns your sites, so keep a copy of it ("agentsite backup --owner").`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if card != "" && certificate {
				return usagef("--card is yours, and --certificate the site's: one at a time")
			}
			if certificate && a.site != "" {
				text, err := peer.ContactCertificate(cmd.Context(), a.target())
				if err != nil {
					return a.undialled(err)
				}
				return a.showCertificate(text)
			}
			if err := a.local("identity"); err != nil {
				return err
			}
			if card != "" {
				return a.showCard(card)
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			if certificate {
				text, err := peer.SiteCertificate(folder)
				if err != nil {
					return err
				}
				return a.showCertificate(text)
			}
			who, err := folder.Identity()
			if err != nil {
				return err
			}
			you, err := peer.KnownIdentity()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(identityResult{who, you.DID})
			}
			if err := a.say("the site in %s:", folder); err != nil {
				return err
			}
			if err := a.showIdentity(who); err != nil {
				return err
			}
			if you.DID == "" {
				return a.say("you have no key of your own yet: agentsite identity --card - makes it, and prints what others grant to")
			}
			return a.say("you, to whom others grant: %s", you.DID)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&card, "card", "", "write your own card to this file")
	cmd.Flags().BoolVar(&certificate, "certificate", false, "print the site's certificate, for clients that know no keys")
	return cmd
}

type identityResult struct {
	state.Identity
	You string `json:"you,omitzero"` // the user's did:key, which others grant permissions to
}

type certificateResult struct {
	Certificate string `json:"certificate"`
}

func (a *app) showCertificate(text string) error {
	if a.json {
		return a.printJSON(certificateResult{text})
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

func (a *app) showIdentity(who state.Identity) error {
	if a.json {
		return a.printJSON(who)
	}
	_, err := fmt.Fprintf(a.out, "peer ID  %s\ndid:key  %s\nkey      %s\n", who.Peer, who.DID, clean(who.File))
	return err
}

func (a *app) showCard(file string) error {
	who, err := peer.OwnerIdentity()
	if err != nil {
		return err
	}
	if file == "-" && !a.json {
		_, err := fmt.Fprint(a.out, peer.OwnerConfig(who))
		return err
	}
	if file != "-" {
		if err := peer.WriteOwnerConfig(file, who); err != nil {
			return err
		}
	}
	return a.showIdentity(who)
}
