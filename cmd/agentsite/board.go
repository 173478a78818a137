package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) scanCommand() *cobra.Command {
	var o ops.ScanOptions
	var probe []string
	var write bool
	cmd := &cobra.Command{
		Use: "scan", GroupID: groupBoard, Args: noArgs,
		Short: "Find connected parts and print their configuration",
		Long: `Scan the I2C buses and the parts with kernel drivers, and print the configuration of the
parts that are found.

On I2C, scan reads one byte from each address. It writes only to addresses where no port
expander, amplifier or converter can be, which would change an output. For others it
lists candidates; --probe identifies the part at an address where a write is harmless.
Parts of the configuration or of a kernel driver are skipped.

Meanwhile drivers ask the network, and listen by radio, for devices that are not wired to this
board. They only ask: nothing is paired. --wired and --bus leave that out.`,
		Example: "  agentsite scan --write\n  agentsite scan --bus i2c-1 --probe 0x48",
		RunE: a.onMachine(a.folder, func(ctx context.Context, f state.Folder, _ []string) error {
			o.Folder = f
			for _, word := range probe {
				n, err := strconv.ParseUint(word, 0, 16)
				if err != nil || n < 0x08 || n > 0x77 {
					return usagef("--probe takes an address of I2C such as 0x48 (0x08 to 0x77), not %q", word)
				}
				o.Probe = append(o.Probe, uint16(n))
			}
			o.Drivers = site.AllDrivers()
			o.Waiting = func(drivers []string) {
				a.remark("waiting for devices on the network and by radio (" + strings.Join(drivers, ", ") +
					"), up to 12 s; --wired does not")
			}
			var found *ops.ScanResult
			err := a.during("looking for parts", func() (err error) {
				found, err = ops.Scan(ctx, o)
				return err
			})
			if err != nil {
				return err
			}
			return a.showScan(found, write)
		}),
	}
	cmd.Flags().StringVar(&o.Bus, "bus", "", "scan only this I2C bus, such as i2c-1")
	cmd.Flags().BoolVar(&o.Wired, "wired", false, "only what is wired to this board: nothing by a network or by radio")
	cmd.Flags().StringSliceVar(&probe, "probe", nil, "an address that may be written to, such as 0x48; may be repeated")
	cmd.Flags().BoolVar(&write, "write", false, "add certain and likely parts to the configuration")
	a.boardFlags(cmd, &o.Config, &o.Root)
	return cmd
}

// boardFlags adds the flags of the commands that inspect the machine. root is for tests.
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

// showScan prints the result of a scan and, with write, adds the devices to the configuration.
func (a *app) showScan(s *ops.ScanResult, write bool) error {
	if s.Running {
		a.note("a site is running from this folder; devices of the configuration are left out")
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
	} else if err := a.scanTable(s, rows, out); err != nil {
		return err
	}
	for _, n := range s.Notes {
		a.note("%s", n)
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

func (a *app) scanTable(s *ops.ScanResult, rows [][]string, out scanResult) error {
	if len(rows) == 0 {
		return a.say("nothing new was found; agentsite doctor reports whether I2C, SPI and 1-Wire are on")
	}
	if err := table(a.out, []string{"WHERE", "WHAT", "CONFIDENCE", "NOTE"}, rows); err != nil {
		return err
	}
	switch {
	case out.Written != "":
		fmt.Fprintf(a.out, "\nwritten to %s (you may change the names):\n%s", clean(out.Written), out.YAML)
	case out.YAML != "":
		fmt.Fprintf(a.out, "\nfor %s (--write adds it):\ndevices:\n%s", clean(s.File), out.YAML)
	}
	if len(s.Maybe) > 0 {
		fmt.Fprintf(a.out, "\nto select from or to complete (agentsite check reports what is missing):\n%s", entries(s.Maybe, "# "))
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
		Short: "Find problems of the board and the configuration, with a remedy",
		RunE: a.onMachine(a.siteFolder, func(ctx context.Context, f state.Folder, _ []string) (err error) {
			o.Folder, o.Drivers = f, site.AllDrivers()
			var found ops.Diagnosis
			a.during("examining the board and the site", func() error {
				found = site.Diagnose(ctx, o)
				return nil
			})
			if a.json {
				err = a.printJSON(found)
			} else {
				for _, f := range found.Findings {
					a.printFinding(f)
				}
				switch warnings := found.Warnings(); {
				case found.Problems == 0 && warnings == 0:
					err = a.say("no problem found")
				case found.Problems == 0:
					err = a.say("no problem found, but %s", counted(warnings, "warning"))
				}
			}
			if err == nil && found.Problems > 0 {
				err = coded{exitFailure, fmt.Errorf("%s found", counted(found.Problems, "problem"))}
			}
			return err
		}),
	}
	a.boardFlags(cmd, &o.Config, &o.Root)
	return cmd
}

func (a *app) prepareCommand() *cobra.Command {
	var o ops.PrepareOptions
	var claim, rewrite, powerOff bool
	cmd := &cobra.Command{
		Use: "prepare", GroupID: groupBoard, Args: noArgs,
		Short: "Prepare the kernel for the site's devices, as the superuser",
		Long: `Do what the devices of the configuration need from the superuser: bind chips to kernel
drivers, and export PWM channels. The site itself runs without these rights. Repeating
the command is harmless.

With --config, also prepare a first boot. An agentsite.yaml on the boot partition is
checked and copied to that file, once for each change. If it has mistakes, it is not used,
and agentsite-errors.txt beside it lists them. Without any configuration, prepare creates
one with the sensors that it finds. Until the site has an owner, agentsite-claim.txt on
the boot partition shows how to claim it.`,
		RunE: a.onMachine(a.folder, func(ctx context.Context, f state.Folder, _ []string) (err error) {
			o.Folder, o.Drivers = f, site.AllDrivers()
			if rewrite {
				return ops.ServeRewrite(o, a.in, a.out)
			}
			if powerOff {
				return ops.ServePowerOff(o, a.out)
			}
			var did []string
			if claim {
				did, err = ops.WriteClaim(o)
			} else {
				did, err = ops.Prepare(ctx, o)
			}
			if a.json {
				return errors.Join(err, a.printJSON(map[string][]string{"did": did}))
			}
			for _, line := range did {
				a.say("%s", line)
			}
			if err == nil && len(did) == 0 {
				return a.say("nothing to do")
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&o.Boot, "boot", "", "where the boot partition is mounted (default: where a Raspberry Pi has it)")
	cmd.Flags().BoolVar(&claim, "claim", false, "only write or remove agentsite-claim.txt on the boot partition")
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "replace the configuration as the request of a service on stdin says")
	cmd.Flags().MarkHidden("rewrite")
	cmd.Flags().BoolVar(&powerOff, "poweroff", false,
		"answer whether a service may have the machine powered off, and fail if not")
	cmd.Flags().MarkHidden("poweroff")
	cmd.Flags().StringVar(&o.Group, "group", ops.DefaultGroup, "the group that may use the exported channels")
	a.boardFlags(cmd, &o.Config, &o.Root)
	cmd.MarkFlagDirname("boot")
	return cmd
}
