package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"agentsite/node/acts"
	"agentsite/transport/mcp/client"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", GroupID: groupBoard, Args: noArgs,
		Short: "Reload the configuration of the running site",
		Long: `Reload the configuration of the running site. New, changed and removed devices are opened
or closed, their outputs at the safe values first. All other devices keep running. A file
with a mistake changes nothing, and neither does a data folder that cannot be written.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			_, err := callOwner(ctx, s, acts.ReloadAct, acts.None{})
			var refused *client.RequestError
			if errors.As(err, &refused) && refused.Kind == "invalid" {
				a.remark(cleanLines(refused.Msg)) // file:line:column, for editors
				return usagef("the configuration is not reloaded; the site keeps the old one")
			}
			if err != nil {
				return err
			}
			return a.print(map[string]bool{"reloaded": true}, "the configuration is reloaded")
		}),
	}
}

// hangups returns the SIGHUPs that ask for a reload: all of them without a terminal, as under
// systemd. With a terminal it returns nil: SIGHUP means that the terminal was closed, and ends
// the site.
func hangups() <-chan os.Signal {
	if tty, err := os.Open("/dev/tty"); err == nil {
		tty.Close()
		return nil
	}
	asked := make(chan os.Signal, 1) // buffers a signal that comes during a reload
	signal.Reset(syscall.SIGHUP)     // of main's handler
	signal.Notify(asked, syscall.SIGHUP)
	return asked
}
