package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/device"

	"github.com/spf13/cobra"
)

// fleetFlags are the flags of all fleet commands.
type fleetFlags struct {
	app     *app
	chosen  fleet.Selection
	timeout time.Duration
}

func (a *app) fleetCommand() *cobra.Command {
	f := &fleetFlags{app: a}
	status := f.statusCommand()
	cmd := &cobra.Command{
		Use: "fleet", GroupID: groupNetwork, Args: noArgs,
		Short: "Do one thing at all of your sites at the same time",
		Long: `Do one thing at all of your sites at the same time: without a command, show how they are.
--sites and --tag choose some of them; "agentsite sites tag" gives sites tags.

A site that does not answer delays no other one. The table says what each site answered.
Exit code 0: all did what was asked. 8: some did not, or have a problem. 6: none answered.`,
		Example: "  agentsite fleet\n  agentsite fleet read climate/temperature --sites 'green*,shed'\n" +
			"  agentsite fleet doctor --tag garden",
		RunE: status.RunE,
	}
	flags := cmd.PersistentFlags()
	flags.StringSliceVar(&f.chosen.Sites, "sites", nil, "only the sites with these names; * stands for any characters: "+
		"'green*,shed'")
	flags.StringSliceVar(&f.chosen.Tags, "tag", nil, "only the sites with this tag; may be repeated")
	flags.DurationVar(&f.timeout, "timeout", 0, fmt.Sprintf("how long to wait for each site (default: %v, or as long as "+
		"the command needs)",
		fleet.DefaultTimeout))
	cmd.RegisterFlagCompletionFunc("sites", a.completeSites)
	cmd.RegisterFlagCompletionFunc("tag", completeTags)
	cmd.AddCommand(status, f.readCommand(), f.doctorCommand(), f.journalCommand(), f.backupCommand(),
		f.allowCommand(), f.revokeCommand(),
		f.applyCommand(), f.updateCommand(), f.realmCommand())
	return cmd
}

// fleetRun is a fleet command at the sites that its flags choose.
type fleetRun struct {
	*app
	user    peer.Person
	sites   []peer.Contact
	all     bool // the flags choose all that the user owns, and not some of them
	dialer  *peer.Dialer
	timeout time.Duration // of --timeout; 0 where it is not given
}

// command returns a fleet command that calls do with the chosen sites.
func (f *fleetFlags) command(do func(ctx context.Context, r *fleetRun, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		a := f.app
		if a.url != "" || a.site != "" || a.peer != "" || a.data != "" || a.as != "" {
			return usagef("%s takes no --site, --peer, --url, --data or --as: --sites chooses sites that you know", words(cmd))
		}
		if f.timeout < 0 {
			return usagef("--timeout takes a time such as 10s, not %v", f.timeout)
		}
		for name, words := range map[string][]string{"sites": f.chosen.Sites, "tag": f.chosen.Tags} {
			if cmd.Flags().Changed(name) && len(words) == 0 { // an unset variable of a script chooses nothing, not all
				return usagef("--%s is empty: write a name after it, or leave it out for all sites that you own", name)
			}
		}
		user, err := peer.User()
		if err != nil {
			return err
		}
		known, err := user.Contacts().List()
		if err != nil {
			return err
		}
		sites, err := f.chosen.From(known)
		if err != nil {
			return err
		}
		dialer, err := user.NewDialer(version)
		if err != nil {
			return err
		}
		defer dialer.Close()
		all := len(f.chosen.Sites)+len(f.chosen.Tags) == 0
		return do(cmd.Context(), &fleetRun{a, user, sites, all, dialer, f.timeout}, args)
	}
}

// maxWaiting bounds the names in the line of progress.
const maxWaiting = 4

// callFleet calls do at each site of the run, and shows its progress.
func callFleet[T any](
	ctx context.Context, r *fleetRun, o fleet.Options, do func(context.Context, *peer.Connection, peer.Contact) (T, error),
) ([]fleet.Result[T], error) {
	show, end := r.progress()
	defer end()
	o.Progress = func(waiting []string) {
		more := ""
		if len(waiting) > maxWaiting {
			more = " and others"
		}
		show("%d of %s answered; waiting for %s%s", len(r.sites)-len(waiting), counted(len(r.sites), "site"),
			strings.Join(waiting[:min(len(waiting), maxWaiting)], ", "), more)
	}
	show("asking %s", counted(len(r.sites), "site"))
	if r.timeout > 0 {
		o.Timeout = r.timeout
	}
	results := fleet.Call(ctx, r.dialer, r.sites, o, do)
	if ctx.Err() != nil {
		return nil, r.unreached(context.Canceled)
	}
	return results, nil
}

// fleetAnswer is the line with --json of what a site answered.
type fleetAnswer[T any] struct {
	Site   string `json:"site"`
	Result *T     `json:"result,omitzero"`
	Error  string `json:"error,omitzero"`
	Kind   string `json:"kind,omitzero"` // of the error
}

// showFleet prints a table with the rows of each site, and one with the error of a site in the last column. Cells
// stand after the site's name. With --json it prints a line for each site.
func showFleet[T any](
	r *fleetRun, results []fleet.Result[T], none string, head []string, cells func(T) [][]string,
) error {
	var rows [][]string
	for _, of := range results {
		if r.json {
			line := fleetAnswer[T]{Site: of.Site.Name, Error: fleetError(of.Err), Kind: of.Kind()}
			if of.Err == nil {
				line.Result = &of.Value
			}
			if err := r.printJSON(line); err != nil {
				return err
			}
			continue
		}
		if of.Err != nil {
			row := make([]string, len(head))
			row[0], row[1], row[len(head)-1] = of.Site.Name, of.Kind(), fleetError(of.Err)
			rows = append(rows, row)
			continue
		}
		said := cells(of.Value)
		for _, row := range said[:min(len(said), maxSiteRows)] {
			rows = append(rows, append([]string{of.Site.Name}, row...))
		}
		if more := len(said) - maxSiteRows; more > 0 {
			r.note("%s has %d more rows, which --json shows", of.Site.Name, more)
		}
	}
	switch {
	case r.json:
		return nil
	case len(rows) == 0:
		return r.say("%s", none)
	}
	return fleetTable(r, head, rows)
}

// A site decides neither the width of the table nor its length.
const (
	maxCell     = 500 // bytes
	maxSiteRows = 1000
)

// fleetTable prints rows with what sites said, clipped.
func fleetTable(r *fleetRun, head []string, rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = device.Clip(row[i], maxCell)
		}
	}
	return table(r.out, head, rows)
}

// maxErrorText bounds the error of a site, in bytes.
const maxErrorText = 200

// fleetError returns an error as a short line, "" for none. Its words may be a site's.
func fleetError(err error) string {
	if err == nil {
		return ""
	}
	return device.Clip(clean(plain(err)), maxErrorText)
}

// fleetOutcome returns the error with the exit code of a fleet command. isBad reports an answer that is a failure,
// too; it may be nil.
func fleetOutcome[T any](results []fleet.Result[T], isBad func(T) bool) error {
	silent, failed := 0, 0
	for _, r := range results {
		switch {
		case !r.Answered():
			silent++
		case r.Err != nil || isBad != nil && isBad(r.Value):
			failed++
		}
	}
	var why []string
	if silent > 0 {
		why = append(why, fmt.Sprintf("%d did not answer", silent))
	}
	if failed > 0 {
		why = append(why, fmt.Sprintf("%d refused it, failed or have a problem", failed))
	}
	switch {
	case silent == len(results):
		return coded{exitAway, errors.New("none of your sites answered: check that this computer is on their network, or " +
			"in their realm " +
			"(agentsite realm list); --timeout 30s waits for longer")}
	case silent+failed > 0:
		return coded{exitSome, fmt.Errorf("of %s, %s", counted(len(results), "site"), strings.Join(why, " and "))}
	}
	return nil
}

func completeTags(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var tags []string
	if user, err := peer.User(); err == nil {
		known, _ := user.Contacts().List()
		for _, k := range known {
			tags = append(tags, k.Tags...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(tags))), cobra.ShellCompDirectiveNoFileComp
}
