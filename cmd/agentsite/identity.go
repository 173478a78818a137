package main

import (
	"context"
	"fmt"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) identityCommand() *cobra.Command {
	var card string
	var certificate bool
	cmd := &cobra.Command{
		Use: "identity", GroupID: groupOwner, Args: noArgs,
		Short: "Print the site's key and your own, or write your owner's card",
		Long: `Print the two forms of the site's public key, by which others know it: peer ID and
did:key. The key is created where there is none. The last line is your own did:key, to
which others grant permissions.

With --certificate, print the site's certificate for HTTPS clients such as curl and Node;
with --site that of another site. It is valid for this site only, and not secret.

With --card, write the line of agentsite.yaml that makes you the site's owner to a file,
or print it for "-". Your private key stays on this machine. Anyone with it owns your
sites: back it up with "agentsite backup --owner".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if card != "" && certificate {
				return usagef("--card is for your key and --certificate for the site's: use one at a time")
			}
			if certificate && a.site != "" {
				text, err := peer.ContactCertificate(cmd.Context(), a.target())
				if err != nil {
					return a.undialled(err)
				}
				return a.showCertificate(text)
			}
			return a.onMachine(a.siteFolder, func(_ context.Context, folder state.Folder, _ []string) error {
				if card != "" {
					return a.showCard(card)
				}
				if certificate {
					text, err := peer.SiteCertificate(folder)
					if err != nil {
						return err
					}
					return a.showCertificate(text)
				}
				return a.showIdentities(folder)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&card, "card", "", "write your owner's card to this file, - for standard output")
	cmd.Flags().BoolVar(&certificate, "certificate", false, "print the site's certificate, for HTTPS clients")
	return cmd
}

type identityResult struct {
	state.Identity
	You string `json:"you,omitzero"` // the user's did:key, which others grant permissions to
}

// showIdentities prints the site's key and the user's.
func (a *app) showIdentities(folder state.Folder) error {
	site, err := folder.Identity()
	if err != nil {
		return err
	}
	you, err := peer.KnownIdentity()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(identityResult{site, you.DID})
	}
	a.say("site in %s:", folder)
	if err := a.showIdentity(site); err != nil {
		return err
	}
	if you.DID == "" {
		return a.say("you have no key yet: agentsite identity --card - creates it")
	}
	return a.say("your own key: %s", you.DID)
}

func (a *app) showCertificate(text string) error {
	if a.json {
		return a.printJSON(map[string]string{"certificate": text})
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

func (a *app) showIdentity(id state.Identity) error {
	if a.json {
		return a.printJSON(id)
	}
	_, err := fmt.Fprintf(a.out, "peer ID  %s\ndid:key  %s\nkey      %s\n", id.Peer, id.DID, clean(id.File))
	return err
}

func (a *app) showCard(file string) error {
	id, err := peer.OwnerIdentity()
	if err != nil {
		return err
	}
	if file == "-" && !a.json {
		_, err := fmt.Fprint(a.out, peer.OwnerConfig(id))
		return err
	}
	if file != "-" {
		if err := peer.WriteOwnerConfig(file, id); err != nil {
			return err
		}
	}
	return a.showIdentity(id)
}
