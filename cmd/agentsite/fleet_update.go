package main

import (
	"context"
	"strings"
	"time"

	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/node/update/remote"

	"github.com/spf13/cobra"
)

const (
	defaultWaves = "1,10%,50%"
	lookTimeout  = 40 * time.Second
)

func (f *fleetFlags) updateCommand() *cobra.Command {
	var want remote.Wanted
	var waves string
	var check bool
	cmd := &cobra.Command{
		Use: "update", Args: noArgs,
		Short: "Update your sites in waves; stop when a wave fails",
		Long: `Update the programs of your sites, each from its own channel of releases. The first wave is one
site; a wave begins when all sites of the one before run the new version, and are well. When a
site fails, no further wave begins. Run it again to go on: sites with the version are left out.

A site that does not run well with the new version goes back by itself. Its outputs go to their
safe values during the restart: a site refuses the update while one is away from safe, unless
--now. Only sites that run as the service of agentsite's package update themselves.

With --check only show the versions, and what the channels offer.`,
		Example: "  agentsite fleet update --check\n  agentsite fleet update --wave 1,25% --sites 'green*'",
		RunE: f.command(func(ctx context.Context, r *fleetRun, _ []string) error {
			w, err := fleet.ParseWaves(waves)
			if err != nil {
				return usagef("--wave: %w", err)
			}
			look := remote.Look{Look: true, Channel: want.Channel, Version: want.Version}
			found, err := callFleet(ctx, r, fleet.Options{Timeout: lookTimeout},
				func(ctx context.Context, c *peer.Connection, _ peer.Contact) (remote.Version, error) {
					v, err := fleet.ReadVersion(ctx, c, look)
					if err == nil && v.Cannot != "" && !check {
						err = fleet.Refused(v.Cannot)
					}
					return v, err
				})
			if err != nil {
				return err
			}
			if check {
				return r.showVersions(found)
			}
			return r.update(ctx, want, w, found)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&waves, "wave", defaultWaves, "how many sites each wave has, or per cent of them; the rest follows "+
		"in one more")
	flags.StringVar(&want.Channel, "channel", "", "stable or beta (default: the one that each board follows)")
	flags.StringVar(&want.Version, "version", "", "this version of the channel (default: the newest)")
	flags.BoolVar(&want.Now, "now", false, "also while an output is away from safe; it goes to its safe value")
	flags.BoolVar(&check, "check", false, "only show the versions")
	return cmd
}

func (r *fleetRun) showVersions(found []fleet.Result[remote.Version]) error {
	err := showFleet(r, found, "", []string{"SITE", "VERSION", "OFFERED", "SAYS"}, func(v remote.Version) [][]string {
		says := v.Cannot
		switch {
		case v.Cannot != "":
		case v.Newer:
			says = "may be updated"
		case v.Failed != "" && v.Failed == v.Offered:
			says = v.Failed + " was rolled back"
		case !v.Proven:
			says = "on trial"
		}
		return [][]string{{v.Version, v.Offered, says}}
	})
	if err != nil {
		return err
	}
	return fleetOutcome(found, nil)
}

// update updates the sites that offer a newer version, in waves.
func (r *fleetRun) update(
	ctx context.Context, want remote.Wanted, waves fleet.Waves, found []fleet.Result[remote.Version],
) error {
	results := make([]fleet.Result[fleet.Updated], len(found))
	var due []peer.Contact
	for i, f := range found {
		results[i] = fleet.Result[fleet.Updated]{
			Site: f.Site, Err: f.Err, Value: fleet.Updated{State: fleet.IsCurrent, Version: f.Value.Version},
		}
		if f.Err == nil && f.Value.Newer {
			results[i].Value.State = fleet.Untouched
			due = append(due, f.Site)
		}
	}
	bad := func(u fleet.Updated) bool {
		return u.State == fleet.Failed || u.State == fleet.RolledBack || u.State == fleet.NotWell
	}
	all := waves.Split(due)
	for n, sites := range all {
		some := *r
		some.sites = sites
		r.note("wave %d of %d: %s", n+1, len(all), counted(len(sites), "site"))
		updated, err := callFleet(ctx, &some, fleet.Options{Timeout: fleet.UpdateTimeout, Changes: true},
			func(ctx context.Context, _ *peer.Connection, k peer.Contact) (fleet.Updated, error) {
				return fleet.Update(ctx, func(ctx context.Context) (*peer.Connection, error) { return r.dialer.Dial(ctx, k) }, want)
			})
		if err != nil {
			return err
		}
		failed := false
		for _, u := range updated {
			failed = failed || u.Err != nil || bad(u.Value)
			for i := range results {
				if results[i].Site.DID == u.Site.DID {
					results[i] = u
				}
			}
		}
		if failed {
			break
		}
	}
	err := showFleet(r, results, "", []string{"SITE", "RESULT", "VERSION", "SAYS"}, func(u fleet.Updated) [][]string {
		return [][]string{{strings.ReplaceAll(u.State, "_", " "), u.Version, u.Says}}
	})
	if err != nil {
		return err
	}
	return fleetOutcome(results, bad)
}
