package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/internet"
	"agentsite/cmd/internal/peer"
	"agentsite/discovery"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// findPatience is how long find looks. Sites that are there answer within seconds.
const findPatience = 30 * time.Second

func (a *app) findCommand() *cobra.Command {
	var capability, realm string
	cmd := &cobra.Command{
		Use: "find", GroupID: groupAgents, Args: noArgs,
		Short: "Find sites anywhere, by what they can do",
		Long: `Find the sites of a realm that you are in ("agentsite realm join"), wherever they are, by
what they can do: a kind of points, such as switch or camera, or a kind and the name of
its points, such as measurement/temperature; without --capability all of them.

Each site is printed as soon as it answers. What the network says of one counts for nothing until the site has shown by its key
that it is the one. YOU CALL IT says which are yours.

With --data, --site or --peer it is that site that looks, in its own realm; without
--capability it tells whom it knows, and asks nobody.`,
		Example: "  agentsite find --capability measurement/temperature\n  agentsite --peer 12D3KooW… points",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.site != "" || a.peer != "" || a.data != "" {
				return a.findFrom(cmd.Context(), capability)
			}
			if err := a.claims("find"); err != nil {
				return err
			}
			user, err := peer.User()
			if err != nil {
				return err
			}
			joined, err := user.Realms().Get(realm)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), findPatience)
			defer cancel()
			found := a.foundPrinter()
			if err := peer.Find(ctx, joined, capability, version, found.print); err != nil {
				return a.undialled(err)
			}
			if found.count == 0 && !a.json {
				return a.say("no site of the realm %s can do that, or none is reached now", joined.Name())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&capability, "capability", "", "what they can do, such as measurement/temperature or switch (default: anything)")
	cmd.Flags().StringVar(&realm, "realm", "", "where to look (default: the only realm that you are in)")
	cmd.RegisterFlagCompletionFunc("capability", cobra.FixedCompletions([]string{"measurement/temperature", "measurement", "switch", "level", "camera", "state", "event", "text"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

// findFrom has a site find others.
func (a *app) findFrom(ctx context.Context, capability string) error {
	return a.ownersSession("find", func(s *session) error {
		var all []peer.Found
		err := s.own(ctx, func(ctx context.Context) error {
			found, err := s.Owner.Find(ctx, capability)
			for _, f := range found {
				all = append(all, peer.Found{Found: f})
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.printFound(all)
	})
}

func (a *app) pingCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "ping [SITE]", GroupID: groupAgents,
		Short: "See by which way a site is reached, and how fast it answers",
		Long: `See by which way a site is reached, and how fast it answers. SITE is the name of one that
you know, or a key: a peer ID or did:key.

PATH is lan (the same network), direct (its address is open), punched (through the routers
of both sides) or relayed (over somebody else's machine, which cannot read along). A
relayed one becomes a punched one within seconds where the routers allow it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && a.site == "" && a.peer == "" {
				return errors.New("SITE is missing")
			}
			return exactly([]string{"SITE"}[:min(len(args), 1)]...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.url != "" || len(args) == 1 && (a.site != "" || a.peer != "") {
				return usagef("ping takes one site: leave out --url, --site and --peer")
			}
			t := a.target()
			if len(args) == 1 {
				t.Site = args[0]
				if len(t.Site) > 24 { // names are shorter, and keys longer
					t.Site, t.Peer = "", args[0]
				}
			}
			err := peer.Ping(cmd.Context(), t, count, func(p peer.PingResult) {
				if a.json {
					a.printJSON(p)
					return
				}
				a.say("%-8s  %8.1f ms  %s  %s", p.Path, p.RTT, strings.ToUpper(p.Encoding), p.Address)
			})
			if err != nil {
				return a.undialled(err)
			}
			return nil
		},
		ValidArgsFunction: a.completeSites,
	}
	cmd.Flags().IntVarP(&count, "count", "c", 3, "how often, a second apart")
	cmd.RegisterFlagCompletionFunc("count", cobra.NoFileCompletions)
	return cmd
}

func (a *app) relayCommand() *cobra.Command {
	o := internet.RelayOptions{Version: version}
	cmd := &cobra.Command{
		Use: "relay", GroupID: groupSite, Args: noArgs,
		Short: "Run a relay: where sites behind routers meet those who look for them",
		Long: `Run a relay, on a machine that everybody can reach, until Ctrl-C. Sites behind routers keep
a place at it, through which they are reached until a direct way is found; it keeps where
sites of a realm are, without knowing what it means, and passes news on. It can read
nothing of what it passes on, and nobody has to trust it: use several.

Open the port for TCP and UDP. The addresses that it prints go under internet: relays: in
the agentsite.yaml of sites, and to "agentsite realm join --relay". They are for QUIC (UDP)
and for TCP, which is tried where a network lets no UDP out; of one the other is inferred.`,
		Example: "  agentsite relay\n  agentsite relay --listen :443 --allow sites.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("relay"); err != nil {
				return err
			}
			var err error
			if o.Folder, err = a.folder(); err != nil {
				return err
			}
			o.Ready = func(addresses []string) {
				if a.json {
					a.printJSON(relayResult{addresses})
					return
				}
				a.say("this relay is reached at:")
				for _, at := range addresses {
					a.say("  %s", at)
				}
			}
			return internet.Relay(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.Listen, "listen", config.DefaultInternet, "the address and port, TCP and UDP")
	cmd.Flags().StringVar(&o.Allow, "allow", "", "a file with the keys of the sites that may be reached through it, a line each; it is read again when it changes (default: everybody)")
	cmd.Flags().StringArrayVar(&o.Others, "other", nil, "another relay, so that what one knows is found through both; may be given several times")
	cmd.RegisterFlagCompletionFunc("listen", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("other", cobra.NoFileCompletions)
	return cmd
}

type relayResult struct {
	Addresses []string `json:"addresses"`
}

func (a *app) realmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "realm", GroupID: groupAgents, Args: noArgs,
		Short: "Say which sites you can find anywhere: those that share a secret with you",
		Long: `A realm is a household's or a company's sites and people, who find each other in the
global network by a secret that they share. Others see neither their names nor what they
can do. The realm "public" is everybody's.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.realmNewCommand(), a.realmJoinCommand(), a.realmListCommand(), a.realmLeaveCommand())
	return cmd
}

func (a *app) realmNewCommand() *cobra.Command {
	var relays []string
	cmd := &cobra.Command{
		Use: "new NAME", Args: exactly("NAME"), Short: "Make a realm, and be in it",
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := discovery.NewRealm(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			j, err := a.join(peer.Realm{Realm: r.String(), Relays: relays})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(j)
			}
			if err := a.say("you are in the realm %s now. For the agentsite.yaml of each of its sites:", r.Name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "\ninternet:\n  realm: %s\n  relays: [%s]\n\n", r, strings.Join(j.Relays, ", "))
			if err == nil {
				err = a.say("and for others, on their own machines:")
			}
			if err == nil {
				_, err = fmt.Fprintf(a.out, "\n  agentsite realm join %s%s\n\n", r, relayFlags(j.Relays))
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	relayFlag(cmd, &relays)
	return cmd
}

// relayFlags are relays as they are given on a command line.
func relayFlags(relays []string) (words string) {
	for _, r := range relays {
		words += " --relay " + state.ShellQuote(r) // whoever runs the relay says where it is
	}
	return words
}

func relayFlag(cmd *cobra.Command, relays *[]string) {
	cmd.Flags().StringArrayVar(relays, "relay", nil, "where its sites meet, as agentsite relay prints it, for QUIC or TCP: both are tried; may be given several times")
	cmd.RegisterFlagCompletionFunc("relay", cobra.NoFileCompletions)
}

func (a *app) realmJoinCommand() *cobra.Command {
	var j peer.Realm
	cmd := &cobra.Command{
		Use: "join REALM", Args: exactly("REALM"), Short: "Be in a realm, by its name and secret, or in public",
		RunE: func(_ *cobra.Command, args []string) error {
			j.Realm = args[0]
			j, err := a.join(j)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(j)
			}
			return a.say("you are in the realm %s now: agentsite find --realm %[1]s", j.Name())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	relayFlag(cmd, &j.Relays)
	cmd.Flags().BoolVar(&j.IPFS, "ipfs", false, "ask the public table of IPFS, too")
	return cmd
}

func (a *app) join(j peer.Realm) (peer.Realm, error) {
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
		RunE: func(*cobra.Command, []string) error {
			user, err := peer.User()
			if err != nil {
				return err
			}
			all, err := user.Realms().List()
			if err != nil {
				return err
			}
			var rows [][]string
			for _, j := range all {
				if !secrets {
					j.Realm = j.Name()
				}
				if a.json {
					if err := a.printJSON(j); err != nil {
						return err
					}
					continue
				}
				rows = append(rows, []string{j.Realm, strings.Join(j.Relays, " "), strconv.FormatBool(j.IPFS)})
			}
			switch {
			case a.json:
				return nil
			case len(rows) == 0:
				return a.say("you are in no realm: agentsite realm new makes one")
			}
			return table(a.out, []string{"REALM", "RELAYS", "IPFS"}, rows)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "with their secrets, which are for those in them")
	return cmd
}

func (a *app) realmLeaveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "leave NAME", Args: exactly("NAME"), Short: "Forget a realm",
		RunE: func(_ *cobra.Command, args []string) error {
			user, err := peer.User()
			if err != nil {
				return err
			}
			if err := user.Realms().Leave(args[0]); err != nil {
				return err
			}
			return a.say("you are not in the realm %s any more", args[0])
		},
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
