package main

import (
	"fmt"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) driversCommand() *cobra.Command {
	return &cobra.Command{
		Use: "drivers [NAME]", GroupID: groupBoard, Args: optional("NAME"),
		Short: "List the drivers, or show how one is wired up and configured",
		Long: `List the drivers, or show how a part is wired up and configured: the shortest entry for
the configuration, its keys with their defaults, the positions of the header, and the
lines of config.txt. NAME is a driver, or a name of the part such as pir, ws2812 or
lcd1602. The command needs no hardware.`,
		Example: "  agentsite drivers relay\n  agentsite drivers ws2812",
		RunE: func(_ *cobra.Command, args []string) error {
			all := site.AllDrivers()
			if len(args) == 0 && !a.json {
				return a.listDrivers()
			}
			found := all
			if len(args) > 0 {
				var err error
				if found, err = ops.FindDrivers(args[0], all); err != nil {
					return usagef("%v", err)
				}
			}
			for i, d := range found {
				page, err := ops.ReadDriver(d, all)
				if err != nil {
					return err
				}
				if a.json {
					err = a.printJSON(page)
				} else {
					if i > 0 {
						a.say("")
					}
					_, err = a.out.Write([]byte(driverText(page)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: completeDrivers,
	}
}

func completeDrivers(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, d := range site.AllDrivers() {
			names = append(names, cobra.CompletionWithDesc(d.Name, d.Doc))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) listDrivers() error {
	const indent = 13 // of the second column
	var b strings.Builder
	for _, d := range site.AllDrivers() {
		b.WriteString(wrapped(pad(d.Name, indent), strings.Repeat(" ", indent), d.Doc))
	}
	b.WriteString("\nagentsite drivers NAME shows one, also by names such as pir or ws2812.\n")
	_, err := a.out.Write([]byte(b.String()))
	return err
}

// driverText is a page as text of at most 80 columns, but for the entry, which is to be copied.
func driverText(p *acts.Driver) string {
	var b strings.Builder
	b.WriteString(wrapped("", "", p.Driver+": "+p.Doc))
	if len(p.Also) > 0 {
		b.WriteString(wrapped("", "", "Found as "+strings.Join(p.Also, ", ")+"."))
	}
	fmt.Fprintf(&b, "\n  NAME: %s\n", p.Entry)
	if len(p.Points) > 0 {
		var points []string
		for _, point := range p.Points {
			points = append(points, point.String())
		}
		b.WriteString("\nPoints\n" + wrapped("  ", "  ", strings.Join(points, ", ")))
	}
	if len(p.Wiring) > 0 || p.Note != "" {
		b.WriteString("\nWiring of this entry\n")
		for _, w := range p.Wiring {
			fmt.Fprintf(&b, "  position %-2d  %s\n", w.Position, w.Line)
		}
		if p.Note != "" {
			b.WriteString(wrapped("  ", "  ", p.Note))
		}
	}
	if len(p.Setup) > 0 {
		b.WriteString("\nIn config.txt of a Raspberry Pi\n")
		for _, line := range p.Setup {
			b.WriteString("  " + line + "\n")
		}
	}
	b.WriteString("\nKeys\n")
	for _, k := range p.Keys {
		b.WriteString(wrapped("  ", "      ", k.String()))
		if k.Key == "address" && len(p.Addresses) > 0 {
			b.WriteString(wrapped("      ", "      ", "This chip can have "+strings.Join(p.Addresses, ", ")+"."))
		}
	}
	if len(p.More) > 0 {
		b.WriteString("\nKeys of its points\n")
		for _, k := range p.More {
			b.WriteString(wrapped("  ", "      ", k.String()))
		}
	}
	return b.String()
}

// wrapped breaks a text into lines of at most 80 columns, the first after first and the others after
// rest.
func wrapped(first, rest, text string) string {
	const width = 80
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > width:
			b.WriteString(line + "\n")
			line = rest + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}
