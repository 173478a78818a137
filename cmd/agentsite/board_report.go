package main

import (
	"context"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) boardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "board", GroupID: groupBoard, Args: noArgs, RunE: help,
		Short:   "Report this board to the developers",
		Example: "  agentsite board report",
	}
	cmd.AddCommand(a.boardReportCommand())
	return cmd
}

func (a *app) boardReportCommand() *cobra.Command {
	var o ops.BoardReportOptions
	cmd := &cobra.Command{
		Use: "report", Args: noArgs,
		Short: "Print what this board is and has, to paste into an issue",
		Long: `Print the model, the system, the kernel, the buses and lines that were found, the parts that answer, the kernel's
parts, the memory, the time of the start, and warnings about the supply. The report has no names that you gave, and no
serial numbers, addresses or keys. docs/boards.md lists the boards that were reported.

The command reads one byte from each I2C address and moves nothing. With --loop it also tests two lines: bridge two
free positions of the header by a wire, better by a resistor of 1 kΩ, with nothing else connected to them. The first
line is driven high and low twenty times. Lines of the configuration, and lines in use, are refused.`,
		Example: "  agentsite board report\n  agentsite board report --loop GPIO5,GPIO6",
		RunE: a.onMachine(a.siteFolder, func(ctx context.Context, f state.Folder, _ []string) error {
			o.Folder, o.Drivers, o.Version = f, site.AllDrivers(), version
			r, err := site.ReportBoard(ctx, o)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			a.note("paste this into an issue; read it first")
			for line := range strings.Lines(r.Text()) {
				a.say("%s", strings.TrimSuffix(line, "\n"))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&o.Loop, "loop", "", "two free lines that are bridged, such as GPIO5,GPIO6: drive the first "+
		"and read the second")
	a.boardFlags(cmd, &o.Config, &o.Root)
	return cmd
}
