package main

import (
	"context"
	"fmt"
	"time"

	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) clockCommand() *cobra.Command {
	var set, back bool
	cmd := &cobra.Command{
		Use: "clock", GroupID: groupOwner, Args: noArgs,
		Short: "Show or set the site's time",
		Long: `Show the site's time, by which permissions end. After a start, a board without a battery
does not know the time until the network or an owner sets it. Until then the site refuses
permissions that end at a time, unless the configuration says "clock: last-known". It
ignores a network time more than a week ahead of the last known time, or a day behind.

Each command of an owner with --site sets the time within the same bounds. --set takes this
machine's clock, however far it is ahead. Time only goes forward; --set --back sets it back,
on the site's own machine. Permissions that ended in between are valid again after that.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			now := time.Now()
			if set || back {
				if _, err := callOwner(ctx, s, acts.TimeAct, acts.TimeNow{Now: now, Set: true, Back: back}); err != nil {
					return err
				}
			}
			all, err := s.access(ctx)
			if err != nil {
				return err
			}
			result := clockResult{all.Time, all.Sure, all.Off}
			switch ahead := all.Time.Sub(now); {
			case set && !back && ahead > time.Minute:
				return fmt.Errorf("the site's time is %s, ahead of this machine's clock, %s, and only goes forward; if this clock is right, run agentsite clock --set --back on the site's own machine", local(all.Time), local(now))
			case all.Off != 0:
				return a.print(result, "The clock is not set (the site takes it for %s). The machine's clock says %s, too far from that to be accepted; if that is right, run agentsite clock --set on the machine", local(all.Time), local(all.Time.Add(time.Duration(all.Off*float64(time.Second)))))
			case all.Sure:
				return a.print(result, "%s", local(all.Time))
			}
			return a.print(result, "The clock is not set (the site takes it for %s). Set it with agentsite clock --set on the site's own machine", local(all.Time))
		}),
	}
	cmd.Flags().BoolVar(&set, "set", false, "set the site's time by this machine's clock")
	cmd.Flags().BoolVar(&back, "back", false, "with --set: also to an earlier time; on the site's own machine")
	return cmd
}

type clockResult struct {
	Time time.Time `json:"time"`
	Sure bool      `json:"time_is_known"`
	Off  float64   `json:"machine_ahead_seconds,omitzero"`
}

// local formats a time in this machine's time zone.
func local(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
