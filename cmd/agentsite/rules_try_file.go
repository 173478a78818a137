package main

import (
	"cmp"
	"context"
	"time"

	"agentsite/cmd/internal/site"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

// offlineTrial adds to the command of a trial to try the rules of a file over the readings of another one,
// without a site.
func (a *app) offlineTrial(cmd *cobra.Command, f *trialFlags) *cobra.Command {
	var readings, file string
	var zone zoneFlag
	online := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch changed := cmd.Flags().Changed; {
		case readings == "" && (changed("config") || changed("zone")):
			return usagef("--config and --zone go with --readings FILE; without it, the running site's rules are tried " +
				"over its own past")
		case readings == "":
			return online(cmd, args)
		case changed("since"):
			return usagef("--since is for a site's own past; with --readings use --from and --to, or neither for the whole file")
		}
		if err := a.requireLocal("rules try --readings"); err != nil {
			return err
		}
		f.zone, f.offline = cmp.Or(zone.Location, time.Local), true
		return a.tryOffline(cmd.Context(), f, args, file, readings)
	}
	cmd.Flags().StringVar(&readings, "readings", "", "try over the readings of this CSV file, without a running site")
	cmd.Flags().StringVar(&file, "config", "", "with --readings: the configuration (default: "+config.DefaultFile+")")
	cmd.Flags().Var(&zone, "zone", "with --readings: the zone of the rules' clock and of times without one, such as "+
		"Europe/Berlin; this machine's without it")
	cmd.MarkFlagFilename("readings", "csv")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

// tryOffline tries rules of a configuration over a recording.
func (a *app) tryOffline(ctx context.Context, f *trialFlags, rules []string, file, readings string) error {
	cfg, _, err := site.CheckBoard(cmp.Or(file, config.DefaultFile))
	if err != nil {
		return err
	}
	past, err := readRecording(readings, cfg, f.zone)
	if err != nil {
		return err
	}
	q := f.request(rules, past.To)
	if !f.from.set() {
		q.From = past.From
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	r, err := site.TryRules(ctx, cfg, past, past.GoodFor, f.zone, q)
	if err != nil {
		return err
	}
	return a.showTrial(r, f)
}
