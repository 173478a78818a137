package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/discovery"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) realmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "realm", GroupID: groupNetwork, Args: noArgs,
		Short: "Create and join realms, in which sites are found anywhere",
		Long: `Create and join realms. A realm is a private group of sites and people who can find each
other on the global network, by a secret that they share. Others see neither the names of
its sites nor what they can do. The realm "public" is open to everyone.`,
		RunE: help,
	}
	cmd.AddCommand(a.realmNewCommand(), a.realmJoinCommand(), a.realmListCommand(), a.realmLeaveCommand())
	return cmd
}

func (a *app) realmNewCommand() *cobra.Command {
	var relays []string
	cmd := &cobra.Command{
		Use: "new NAME", Args: exactly("NAME"), Short: "Create a realm and join it",
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := discovery.NewRealm(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			j, err := joinRealm(peer.Realm{Realm: r.String(), Relays: relays})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(j)
			}
			_, err = fmt.Fprintf(a.out, "You are in the realm %s. In the agentsite.yaml of each of its sites:\n\ninternet:\n  realm: %s\n  relays: [%s]\n\nOn the computers of other people:\n\n  agentsite realm join %[2]s%[4]s\n\n",
				clean(r.Name), r, clean(strings.Join(j.Relays, ", ")), clean(relayFlags(j.Relays)))
			return err
		},
	}
	relayFlag(cmd, &relays)
	return cmd
}

// relayFlags returns relays as flags, quoted for a shell: their addresses come from others.
func relayFlags(relays []string) (flags string) {
	for _, r := range relays {
		flags += " --relay " + state.ShellQuote(r)
	}
	return flags
}

func relayFlag(cmd *cobra.Command, relays *[]string) {
	cmd.Flags().StringArrayVar(relays, "relay", nil, "a relay's address, as agentsite relay prints it; QUIC and TCP are both tried; may be repeated")
}

func (a *app) realmJoinCommand() *cobra.Command {
	var j peer.Realm
	cmd := &cobra.Command{
		Use: "join REALM", Args: exactly("REALM"), Short: "Join a realm by its name and secret, or public",
		RunE: func(_ *cobra.Command, args []string) error {
			j.Realm = args[0]
			j, err := joinRealm(j)
			if err != nil {
				return err
			}
			return a.print(j, "you are in the realm %s: agentsite find --realm %[1]s", j.Name())
		},
	}
	relayFlag(cmd, &j.Relays)
	cmd.Flags().BoolVar(&j.IPFS, "ipfs", false, "also use the public DHT of IPFS")
	return cmd
}

func joinRealm(j peer.Realm) (peer.Realm, error) {
	user, err := peer.User()
	if err != nil {
		return j, err
	}
	return user.Realms().Join(j)
}

func (a *app) realmListCommand() *cobra.Command {
	var secrets bool
	cmd := &cobra.Command{
		Use: "list", Args: noArgs, Short: "List the realms that you are in",
		RunE: a.asUser(func(_ context.Context, user peer.Person, _ []string) error {
			all, err := user.Realms().List()
			if err != nil {
				return err
			}
			for i := range all {
				if !secrets {
					all[i].Realm = all[i].Name()
				}
			}
			return printList(a, all, "you are in no realm: agentsite realm new creates one", []string{"REALM", "RELAYS", "IPFS"}, func(j peer.Realm) []string {
				return []string{j.Realm, strings.Join(j.Relays, " "), strconv.FormatBool(j.IPFS)}
			})
		}),
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "also print the secrets")
	return cmd
}

func (a *app) realmLeaveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "leave NAME", Args: exactly("NAME"), Short: "Leave a realm",
		RunE: a.asUser(func(_ context.Context, user peer.Person, args []string) error {
			if err := user.Realms().Leave(args[0]); err != nil {
				return err
			}
			return a.say("you left the realm %s", args[0])
		}),
		ValidArgsFunction: completeRealms,
	}
}

func completeRealms(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if user, err := peer.User(); err == nil {
		all, _ := user.Realms().List()
		for _, j := range all {
			names = append(names, j.Name())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
