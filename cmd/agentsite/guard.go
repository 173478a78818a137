package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"agentsite/cmd/internal/site"
	"agentsite/node/devices"

	"github.com/spf13/cobra"
)

// guardCommand is what run starts, and nobody else.
func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "guard", Args: noArgs, Hidden: true,
		Short: "Drive the outputs for agentsite run, which starts this",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := a.folder()
			if err != nil {
				return err
			}
			// It ends with the site, or by SIGTERM: a terminal that closes is the site's affair.
			signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
			stops := stopSignals()
			defer logTo(a.errs, slog.LevelInfo)()
			conn, err := devices.GuardConn()
			if err != nil {
				return usagef("agentsite run starts this by itself: %w", err)
			}
			return site.Guard(cmd.Context(), folder, conn, stops)
		},
	}
}

func (a *app) safeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "safe", GroupID: groupSite, Args: noArgs,
		Short: "Drive every output to its safe value, without a site",
		Long: `Drive every output that the site last used to its safe value, and end. It is for when
the site has ended, however it ended: systemd's ExecStopPost. It waits for a guard that
is still about, and ends one that hangs. To stop a site that runs, use agentsite stop.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("safe"); err != nil {
				return err
			}
			folder, err := a.folder()
			if err != nil {
				return err
			}
			defer logTo(a.errs, slog.LevelInfo)()
			n, err := site.Safe(cmd.Context(), folder)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(safeResult{Outputs: n})
			}
			return a.say("every output is at its safe value (%d of them)", n)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

type safeResult struct {
	Outputs int `json:"outputs"`
}
