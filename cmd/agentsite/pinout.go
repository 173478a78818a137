package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/device/board/pinout"

	"github.com/spf13/cobra"
)

func (a *app) pinoutCommand() *cobra.Command {
	var o ops.PinoutOptions
	var svg string
	cmd := &cobra.Command{
		Use: "pinout", GroupID: groupBoard, Args: noArgs,
		Short: "Show the board's header with the devices' pins",
		Long: `Show the 40-pin header of a Raspberry Pi from above, with the devices of the configuration
at their pins. The command needs no hardware and works on any machine.`,
		Example: "  agentsite pinout --svg wiring.svg",
		RunE: func(*cobra.Command, []string) error {
			if err := a.requireLocal("pinout"); err != nil {
				return err
			}
			o.Drivers = site.AllDrivers()
			p, err := ops.ReadPinout(o)
			switch {
			case err != nil:
				return err
			case svg == "-":
				_, err = a.out.Write(p.SVG())
				return err
			case svg != "":
				if err := os.WriteFile(svg, p.SVG(), 0o644); err != nil {
					return fmt.Errorf("the picture cannot be written: %w", err)
				}
				return nil
			case a.json:
				return a.printJSON(p)
			}
			return a.showPinout(p)
		},
	}
	cmd.Flags().StringVar(&svg, "svg", "", "write an SVG picture to this file, or - for standard output")
	a.boardFlags(cmd, &o.Config, &o.Root)
	cmd.MarkFlagFilename("svg", "svg")
	return cmd
}

// showPinout prints the header from above, the SD card's end at the top.
func (a *app) showPinout(p *pinout.Pinout) error {
	var left, right [][2]string // label and devices
	var inner, outer int
	for _, pos := range p.Positions {
		cell := [2]string{pinout.Label(pos), strings.Join(pos.Devices, ", ")}
		if pos.Number%2 == 0 {
			right = append(right, cell)
			continue
		}
		left = append(left, cell)
		inner, outer = max(inner, len(cell[0])), max(outer, utf8.RuneCountInString(cell[1]))
	}
	var b strings.Builder
	about := p.Board
	if p.Site != "" {
		about = p.Site + " on " + about
	}
	fmt.Fprintf(&b, "%s\n\n", clean(about))
	for i, l := range left {
		line := fmt.Sprintf("%*s  %*s  %2d  %-2d  %-*s  %s", outer, l[1], inner, l[0], 2*i+1, 2*i+2, inner, right[i][0], right[i][1])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if len(p.Elsewhere) > 0 {
		fmt.Fprintf(&b, "\nnot on this header: %s\n", strings.Join(p.Elsewhere, ", "))
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}
