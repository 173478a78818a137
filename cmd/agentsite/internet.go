package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/cmd/internal/internet"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// findTimeout bounds the search of find. Sites answer within seconds.
const findTimeout = 30 * time.Second

func (a *app) findCommand() *cobra.Command {
	var capability, realm string
	cmd := &cobra.Command{
		Use: "find", GroupID: groupNetwork, Args: noArgs,
		Short: "Find sites anywhere, by capability",
		Long: `Find the sites of a realm that you are in ("agentsite realm join"), anywhere, by what they
can do. A capability is a kind of points, such as switch or camera, or a kind and a name,
such as measurement/temperature.

Each site is printed when it has answered and proved its key. YOU CALL IT shows which
sites are yours.

With --data, --site or --peer that site searches its own realm. Without --capability it
lists the sites that it knows, without a search.`,
		Example: "  agentsite find --capability measurement/temperature\n  agentsite --peer 12D3KooW… points",
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.site != "" || a.peer != "" || a.data != "" {
				return a.asOwner(func(ctx context.Context, s *session, _ []string) error {
					return s.find(ctx, capability)
				})(cmd, args)
			}
			return a.asUser(func(ctx context.Context, user peer.Person, _ []string) error {
				joined, err := user.Realms().Get(realm)
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, findTimeout)
				defer cancel()
				found := &foundPrinter{app: a}
				err = a.during("looking for sites of the realm "+joined.Name(), func() error {
					return peer.Find(ctx, joined, capability, version, found.print)
				})
				if err != nil {
					return a.undialled(err)
				}
				if found.count == 0 && !a.json {
					return a.say("no site of the realm %s with this capability answers", joined.Name())
				}
				return nil
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&capability, "capability", "", "what the sites can do, such as measurement/temperature or switch (default: anything)")
	cmd.Flags().StringVar(&realm, "realm", "", "the realm (default: the only one that you are in)")
	cmd.RegisterFlagCompletionFunc("capability", cobra.FixedCompletions([]string{"measurement/temperature", "measurement", "switch", "level", "camera", "state", "event", "text"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("realm", completeRealms)
	return cmd
}

// find makes the site find others of its realm.
func (s *session) find(ctx context.Context, capability string) error {
	found, err := callOwner(ctx, s, acts.FindAct, acts.Wanted{Capability: capability})
	if err != nil {
		return err
	}
	var all []peer.Found
	for _, f := range found.Found {
		all = append(all, peer.Found{Found: f})
	}
	return s.app.printFound(all, "the site found no other site")
}

func (a *app) pingCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "ping [SITE]", GroupID: groupNetwork,
		Short: "Show the path to a site and its response time",
		Long: `Show the path to a site and its response time. SITE is a name of agentsite sites, or a
key: a peer ID or did:key.

PATH is lan (the same network), direct (a public address), punched (through the routers of
both sides) or relayed (over a relay, which cannot read the traffic). A relayed path
becomes punched within seconds if the routers allow it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && a.site == "" && a.peer == "" {
				return errors.New("SITE is missing")
			}
			return optional("SITE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.url != "" || len(args) == 1 && (a.site != "" || a.peer != "") {
				return usagef("ping takes one site: leave out --url, --site and --peer")
			}
			t := a.target()
			if len(args) == 1 {
				t.Site = args[0]
				if len(t.Site) > maxName { // a key
					t.Site, t.Peer = "", args[0]
				}
			}
			err := peer.Ping(cmd.Context(), t, count, func(p peer.PingResult) {
				a.print(p, "%-8s  %8.1f ms  %s  %s", p.Path, p.RTT, strings.ToUpper(p.Encoding), p.Address)
			})
			if err != nil {
				return a.undialled(err)
			}
			return nil
		},
		ValidArgsFunction: a.completeSite,
	}
	cmd.Flags().IntVarP(&count, "count", "c", 3, "the number of pings, one each second")
	return cmd
}

func (a *app) relayCommand() *cobra.Command {
	o := internet.RelayOptions{Version: version}
	cmd := &cobra.Command{
		Use: "relay", GroupID: groupNetwork, Args: noArgs,
		Short: "Run a relay for sites behind routers",
		Long: `Run a relay on a machine with a public address, until Ctrl-C. Sites behind routers are
reached through it until a direct path is found. As a DHT server it also stores where the
sites of a realm are, under names that only members can derive. It cannot read what it
forwards, so it needs no trust. Use several.

Open the port for TCP and UDP. Put the addresses that it prints under internet: relays: in
the agentsite.yaml of the sites, and give them to "agentsite realm join --relay". One
address is enough for both QUIC (UDP) and TCP, which is used where UDP is blocked.

With --public, any HTTPS client reaches the listed sites by a name in your zone. The relay
reads the name that a caller asks for and passes the bytes on; only the site has the
certificate. Point *.ZONE to this machine (A and AAAA), and nothing else.`,
		Example: "  agentsite relay\n  agentsite relay --listen :443 --allow sites.txt\n  agentsite relay --public sites.example.org --allow sites.txt",
		RunE: a.onMachine(a.folder, func(ctx context.Context, f state.Folder, _ []string) error {
			o.Folder = f
			o.Ready = func(addresses []string) {
				a.print(map[string][]string{"addresses": addresses}, "the relay listens at:")
				for _, at := range addresses {
					if !a.json {
						a.say("  %s", at)
					}
				}
				if o.Public != "" && !a.json {
					a.say("the sites of %s have public names in %s: point *.%[2]s here; callers come to %[3]s",
						o.Allow, o.Public, o.Callers)
				}
			}
			return internet.Relay(ctx, o)
		}),
	}
	cmd.Flags().StringVar(&o.Listen, "listen", config.DefaultInternet, "the address and port, TCP and UDP")
	cmd.Flags().StringVar(&o.Allow, "allow", "", "a file with the keys of the sites that may use the relay, one each line; it is read again when it changes (default: all sites)")
	cmd.Flags().StringVar(&o.Public, "public", "", "a DNS zone that points here, such as sites.example.org: the listed sites have public names in it; needs --allow")
	cmd.Flags().StringVar(&o.Callers, "public-listen", ":443", "with --public: the address and port that callers of these names come to, TCP")
	cmd.Flags().IntVar(&o.PublicConnections, "public-connections", internet.PublicConnections, "with --public: the connections to one site at a time; one network of callers has half; a site takes at most 48 of one relay")
	cmd.Flags().IntVar(&o.PublicMiB, "public-mib", internet.PublicMiB, "with --public: the MiB of one site a day, both ways; one network of callers has half")
	cmd.Flags().StringArrayVar(&o.Others, "other", nil, "another relay with which this one shares records; may be repeated")
	return cmd
}
