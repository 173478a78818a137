package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"agentsite/transport/mcp/client"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", GroupID: groupSite, Args: noArgs,
		Short: "Have the site read its configuration again",
		Long: `Have the site that runs read its configuration again. Devices that are new, different
or gone are opened and closed; their outputs go to safe first. All others go on as if
nothing had happened. A file with a mistake changes nothing, nor does a data folder that
takes no new plan for the outputs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.owners("reload"); err != nil {
				return err
			}
			return a.with(func(s *session) error {
				err := s.own(cmd.Context(), s.Owner.Reload)
				var refused *client.Refusal
				if errors.As(err, &refused) && refused.Kind == "invalid" {
					fmt.Fprintln(a.errs, cleanLines(refused.Msg)) // with its lines, for editors that jump to them
					return usagef("the configuration is not reloaded; the site goes on as it was")
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(reloadedResult{Reloaded: true})
				}
				return a.say("the configuration is reloaded")
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

type reloadedResult struct {
	Reloaded bool `json:"reloaded"`
}

// hangups are the SIGHUPs that ask for a reload: all of them where there is no
// terminal, as under systemd. With one, SIGHUP says that it is closed, and ends the
// site as it ends any command.
func hangups() <-chan os.Signal {
	if tty, err := os.Open("/dev/tty"); err == nil {
		tty.Close()
		return nil
	}
	asked := make(chan os.Signal, 1) // one that comes meanwhile is not lost
	signal.Reset(syscall.SIGHUP)     // from what ends all commands
	signal.Notify(asked, syscall.SIGHUP)
	return asked
}
