package main

import (
	"context"
	"fmt"
	"time"

	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/rollback"

	"github.com/spf13/cobra"
)

// tryConfiguration replaces the site's configuration on trial, and confirms it.
func (a *app) tryConfiguration(ctx context.Context, n acts.NewConfiguration, file string) error {
	dial := func(context.Context) (*peer.Connection, error) {
		s, err := a.dial()
		if err != nil {
			return nil, err
		}
		return s.Connection, nil
	}
	s, err := fleet.Try(ctx, dial, n)
	if err != nil {
		return err
	}
	if s.State == rollback.Kept {
		return a.print(s, "the site uses %s now, and is well", file)
	}
	return errRolledBack(s)
}

// errRolledBack is the error of a configuration that the site does not use any more, in the site's words.
func errRolledBack(s rollback.Status) error {
	if s.State == rollback.Replaced {
		return device.Faultf(device.Unavailable, "somebody else changed the configuration meanwhile, which stays as that")
	}
	return device.Faultf(device.Unavailable, "the site uses the configuration before again: %s", clean(s.Because))
}

func (a *app) configTrialCommand() *cobra.Command {
	var keep, back bool
	cmd := &cobra.Command{
		Use: "trial", Args: noArgs, Short: "Show the last trial of a configuration, or end it",
		Long: `Show how the last trial of a configuration goes, or how it ended: one that config replace --trial
or fleet apply began. --confirm keeps the new configuration, once the site has been well for 10 s.
--back puts the one before back at once.`,
		Example: "  agentsite config trial --site greenhouse\n  agentsite config trial --back --site greenhouse",
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			if keep && back {
				return usagef("--confirm keeps the new configuration, and --back the one before: leave out one of them")
			}
			t, err := callOwner(ctx, s, rollback.TrialAct, acts.None{})
			if err == nil && (keep || back) {
				t, err = callOwner(ctx, s, rollback.ConfirmAct, rollback.Confirmation{Digest: t.Digest, Back: back})
			}
			if err != nil {
				return err
			}
			return a.print(t, "%s", trialSays(t))
		}),
	}
	cmd.Flags().BoolVar(&keep, "confirm", false, "keep the configuration that is on trial")
	cmd.Flags().BoolVar(&back, "back", false, "put the configuration before back")
	return cmd
}

// trialSays returns a trial in a sentence.
func trialSays(t rollback.Status) string {
	switch t.State {
	case "":
		return "no configuration was tried here yet"
	case rollback.Kept:
		return "the last trial was confirmed: the site uses the new configuration"
	case rollback.Replaced:
		return "the last trial ended when somebody else changed the configuration"
	case rollback.RolledBack:
		return "the last trial was rolled back: " + clean(t.Because)
	}
	says := fmt.Sprintf("a configuration of %s is on trial for %s more", clean(t.Who),
		device.FormatDuration(time.Duration(t.Left)*time.Second))
	if t.Problem != "" {
		says += "; not well: " + clean(t.Problem)
	}
	return says
}
