package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/peer"
	"agentsite/cmd/internal/site"
	"agentsite/node/config"

	"github.com/spf13/cobra"
)

func (a *app) scanCommand() *cobra.Command {
	var o ops.ScanOptions
	var probe []string
	var write bool
	cmd := &cobra.Command{
		Use: "scan", GroupID: groupBoard, Args: noArgs,
		Short: "Find what is wired up, and the YAML to use it",
		Long: `Look at the I2C buses and at what Linux drives already, and show what is wired up
and how to write it into the configuration.

On I2C it reads one byte from each address. It writes only where no port expander,
amplifier or converter can be that would take the byte for an output. Elsewhere it
names candidates; where you know that nothing there can do harm, --probe finds out.
What the configuration has already is left alone, and so is what a kernel driver has.`,
		Example: "  agentsite scan --write\n  agentsite scan --bus i2c-1 --probe 0x48",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("scan"); err != nil {
				return err
			}
			var err error
			if o.Folder, err = a.folder(); err != nil {
				return err
			}
			for _, word := range probe {
				n, err := strconv.ParseUint(word, 0, 16)
				if err != nil || n < 0x08 || n > 0x77 {
					return usagef("--probe takes an address of I2C such as 0x48 (0x08 to 0x77), not %q", word)
				}
				o.Probe = append(o.Probe, uint16(n))
			}
			o.Drivers = site.AllDrivers()
			found, err := ops.Scan(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.scanned(found, write)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.Bus, "bus", "", "look at this I2C bus only, such as i2c-1")
	cmd.Flags().StringSliceVar(&probe, "probe", nil, "an address where anything may be written, such as 0x48; can be given again")
	cmd.Flags().BoolVar(&write, "write", false, "add what is certain or likely to the configuration")
	a.boardFlags(cmd, &o.Config, &o.Root)
	cmd.RegisterFlagCompletionFunc("bus", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("probe", cobra.NoFileCompletions)
	return cmd
}

// boardFlags are those of the commands that look at the machine. root is for the
// tests, which have no board.
func (a *app) boardFlags(cmd *cobra.Command, file, root *string) {
	cmd.Flags().StringVar(file, "config", "", "the configuration (default: "+config.DefaultFile+", where there is one)")
	cmd.Flags().StringVar(root, "root", "", "")
	cmd.Flags().MarkHidden("root")
	cmd.MarkFlagFilename("config", "yaml", "yml")
}

type scanResult struct {
	Found   []foundPart `json:"found"`
	YAML    string      `json:"yaml,omitzero"`
	Written string      `json:"written,omitzero"`
}

type foundPart struct {
	Where      string   `json:"where"`
	What       string   `json:"what"`
	Confidence string   `json:"confidence"`
	Says       string   `json:"says,omitzero"`
	YAML       []string `json:"yaml,omitzero"`
}

// scanned shows what a scan found, and writes it where it was told to.
func (a *app) scanned(s *ops.ScanResult, write bool) error {
	if s.Running {
		fmt.Fprintln(a.errs, "agentsite: a site runs from this folder; the devices of the configuration are left out")
	}
	out := scanResult{Found: []foundPart{}, YAML: entries(s.Add, "")}
	var rows [][]string
	for _, f := range s.Found {
		p := foundPart{Where: f.Where, What: f.What, Confidence: string(f.Confidence), Says: f.Says}
		for _, d := range f.Devices {
			p.YAML = append(p.YAML, d.Name+": "+d.YAML)
		}
		out.Found = append(out.Found, p)
		rows = append(rows, []string{f.Where, f.What, string(f.Confidence), f.Says})
	}
	if write && len(s.Add) > 0 {
		if err := s.Write(); err != nil {
			return err
		}
		out.Written = s.File
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else if err := a.showScan(s, rows, out); err != nil {
		return err
	}
	var errs []error
	for _, f := range s.Trouble {
		errs = append(errs, errors.New(f.Says))
	}
	if err := errors.Join(errs...); err != nil {
		return coded{exitAway, err}
	}
	return nil
}

func (a *app) showScan(s *ops.ScanResult, rows [][]string, out scanResult) error {
	if len(rows) == 0 {
		return a.say("nothing new was found; agentsite doctor says whether I2C, SPI and 1-Wire are on")
	}
	if err := table(a.out, []string{"WHERE", "WHAT", "CONFIDENCE", "NOTE"}, rows); err != nil {
		return err
	}
	switch {
	case out.Written != "":
		fmt.Fprintf(a.out, "\nwritten to %s, with names that you may change:\n%s", clean(out.Written), out.YAML)
	case out.YAML != "":
		fmt.Fprintf(a.out, "\nfor %s (--write adds it):\ndevices:\n%s", clean(s.File), out.YAML)
	}
	if len(s.Maybe) > 0 {
		fmt.Fprintf(a.out, "\nto choose from, or to complete (agentsite check says what is missing):\n%s", entries(s.Maybe, "# "))
	}
	return nil
}

// entries writes devices as lines of YAML.
func entries(devices []config.Entry, before string) string {
	var b strings.Builder
	for _, d := range devices {
		b.WriteString("  " + before + clean(d.Name+": "+d.YAML) + "\n")
	}
	return b.String()
}

func (a *app) doctorCommand() *cobra.Command {
	var o ops.DoctorOptions
	cmd := &cobra.Command{
		Use: "doctor", GroupID: groupBoard, Args: noArgs,
		Short: "Say what is not well with the board and the configuration, and what mends it",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.local("doctor"); err != nil {
				return err
			}
			if o.Folder, err = a.siteFolder(); err != nil {
				return err
			}
			o.Drivers, o.Dial = site.AllDrivers(), func() (*ops.RunningSite, error) {
				c, err := peer.Dial(peer.Target{Folder: o.Folder})
				if err != nil {
					return nil, err
				}
				return &ops.RunningSite{Owner: c.Owner, Tools: c, Closer: c}, nil
			}
			found := ops.Diagnose(cmd.Context(), o)
			if a.json {
				err = a.printJSON(found)
			} else {
				for _, f := range found.Findings {
					fmt.Fprintf(a.out, "%s: %s: %s\n", f.Severity, clean(f.Subject), cleanLines(f.Says))
					if f.Do != "" {
						fmt.Fprintf(a.out, "    %s\n", clean(f.Do))
					}
				}
				switch warnings := found.Warnings(); {
				case found.Problems == 0 && warnings == 0:
					err = a.say("no problem was found")
				case found.Problems == 0:
					err = a.say("no problem was found beside %s", counted(warnings, "warning"))
				}
			}
			if err == nil && found.Problems > 0 {
				err = coded{exitFailure, fmt.Errorf("%s found", counted(found.Problems, "problem"))}
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.boardFlags(cmd, &o.Config, &o.Root)
	return cmd
}

type prepareResult struct {
	Did []string `json:"did"`
}

func (a *app) prepareCommand() *cobra.Command {
	var o ops.PrepareOptions
	var claim bool
	cmd := &cobra.Command{
		Use: "prepare", GroupID: groupBoard, Args: noArgs,
		Short: "Do what takes the superuser, before the site starts",
		Long: `Do for the devices of the configuration what takes the superuser: tell the kernel
of the chips that its drivers are to drive, and export PWM channels. The site itself
needs no such rights. What is done already stays as it is.

With --config it also does what a first boot needs. An agentsite.yaml on the boot
partition is checked and becomes that file, once for each change of it; one with
mistakes is not, and agentsite-errors.txt beside it says why. Where there is no
configuration at all, one is made of the sensors that are found. As long as nobody
owns the site, agentsite-claim.txt on the boot partition says how to claim it.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.local("prepare"); err != nil {
				return err
			}
			if o.Folder, err = a.folder(); err != nil {
				return err
			}
			o.Drivers = site.AllDrivers()
			var did []string
			if claim {
				did, err = ops.WriteClaim(o)
			} else {
				did, err = ops.Prepare(cmd.Context(), o)
			}
			if a.json {
				return errors.Join(err, a.printJSON(prepareResult{append([]string{}, did...)}))
			}
			for _, line := range did {
				a.say("%s", line)
			}
			if err == nil && len(did) == 0 {
				return a.say("there was nothing to do")
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.Boot, "boot", "", "where the boot partition is mounted (default: where a Raspberry Pi has it)")
	cmd.Flags().BoolVar(&claim, "claim", false, "only write or remove agentsite-claim.txt on the boot partition, as the site is now")
	cmd.Flags().StringVar(&o.Group, "group", ops.DefaultGroup, "the group that may use what is exported")
	a.boardFlags(cmd, &o.Config, &o.Root)
	cmd.RegisterFlagCompletionFunc("group", cobra.NoFileCompletions)
	cmd.MarkFlagDirname("boot")
	return cmd
}
