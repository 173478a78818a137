package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/site"
	"agentsite/node/devices"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// guardCommand is the process that run starts to drive the outputs.
func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "guard", Args: noArgs, Hidden: true,
		Short: "Drive the outputs for agentsite run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := a.folder()
			if err != nil {
				return err
			}
			// It ends with the site or by SIGTERM; the site handles the terminal's signals.
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

// superviseCommand is the process between the site and a child without a unit.
func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Hidden: true, Args: cobra.MinimumNArgs(2),
		Short: "Run a child of agentsite run",
		RunE:  func(_ *cobra.Command, args []string) error { return hosting.Supervise(args[0], args[1:]) },
	}
}

func (a *app) safeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "safe", GroupID: groupBoard, Args: noArgs,
		Short: "Drive every output to its safe value without a running site",
		Long: `Drive every output that the site last used to its safe value. Use it after the site has
ended, as systemd's ExecStopPost does. It waits for an output process that still runs, and
kills one that hangs. To stop a running site, use agentsite stop.`,
		RunE: a.onMachine(a.folder, func(ctx context.Context, folder state.Folder, _ []string) error {
			defer logTo(a.errs, slog.LevelInfo)()
			n, err := site.Safe(ctx, folder)
			if err != nil {
				return err
			}
			return a.print(map[string]int{"outputs": n}, "all outputs are at their safe values (%d)", n)
		}),
	}
}
