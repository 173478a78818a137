package main

import (
	"context"
	"slices"

	"agentsite/cmd/internal/peer"
	"agentsite/discovery"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

func (f *fleetFlags) realmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "realm", Args: noArgs,
		Short: "Put your sites into a realm, in which they are found anywhere",
		Long: `Put your sites into a realm, in which they are found anywhere. This computer joins it first. The
command then sets realm and relays below internet: in the configuration of each site, and leaves the
rest as it is. A site that is in another realm leaves that one.

Each site restarts, and its outputs go to their safe values. It tries the change as with
"agentsite fleet apply": if this computer does not reach it again, it goes back by itself.`,
		Example: "  agentsite fleet realm new farm --relay ADDRESS\n" +
			"  agentsite fleet realm join farm --sites 'green*'",
		RunE: help,
	}
	cmd.AddCommand(f.realmNewCommand(), f.realmJoinCommand())
	return cmd
}

func (f *fleetFlags) realmNewCommand() *cobra.Command {
	var o applyFlags
	var relays []string
	cmd := &cobra.Command{
		Use: "new NAME", Args: exactly("NAME"), Short: "Create a realm, join it and put your sites into it",
		Example: "  agentsite fleet realm new farm --relay ADDRESS --dry-run\n" +
			"  agentsite fleet realm new farm --relay ADDRESS",
		RunE: f.command(func(ctx context.Context, r *fleetRun, args []string) error {
			realm, err := discovery.NewRealm(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if o.dryRun {
				r.note("the realm is not created, and will have another secret")
			}
			return r.joinRealm(ctx, o, peer.Realm{Realm: realm.String(), Relays: relays})
		}),
	}
	o.register(cmd)
	o.dryRunFlag(cmd)
	relayFlag(cmd, &relays)
	return cmd
}

func (f *fleetFlags) realmJoinCommand() *cobra.Command {
	var o applyFlags
	var relays []string
	cmd := &cobra.Command{
		Use: "join REALM", Args: exactly("REALM"), Short: "Put your sites into a realm",
		Long: `Put your sites into a realm: one with its secret, public, or the name of one that this computer is
in, whose relays are used unless --relay gives others. Without any relays the sites keep theirs.
Each site restarts, and its outputs go to their safe values.`,
		Example: "  agentsite fleet realm join farm --sites 'green*' --dry-run\n" +
			"  agentsite fleet realm join farm --sites 'green*'",
		RunE: f.command(func(ctx context.Context, r *fleetRun, args []string) error {
			known, err := r.user.Realms().List()
			if err != nil {
				return err
			}
			j := peer.Realm{Realm: args[0]}
			is := func(k peer.Realm) bool { return args[0] == k.Realm || args[0] == k.Name() }
			if i := slices.IndexFunc(known, is); i >= 0 {
				j = known[i]
			}
			if len(relays) > 0 {
				j.Relays = relays
			}
			return r.joinRealm(ctx, o, j)
		}),
		ValidArgsFunction: completeRealms,
	}
	o.register(cmd)
	o.dryRunFlag(cmd)
	relayFlag(cmd, &relays)
	return cmd
}

// joinRealm has this computer join a realm, by which it finds the sites again, and then the sites.
func (r *fleetRun) joinRealm(ctx context.Context, o applyFlags, j peer.Realm) (err error) {
	if err = o.check(); err != nil {
		return err
	}
	if j, err = j.Checked(); err != nil {
		return err
	}
	if !o.dryRun {
		if j, err = r.user.Realms().Join(j); err != nil {
			return err
		}
		if r.dialer, err = r.user.NewDialer(version); err != nil { // with the realm
			return err
		}
		defer r.dialer.Close()
	}
	o.restart = true
	return r.apply(ctx, o, func(file, _ string, now []byte) ([]byte, error) {
		return config.JoinRealm(file, now, j.Realm, j.Relays)
	})
}
