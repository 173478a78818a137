package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/rollback"
	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
)

const (
	defaultTrial = 90 * time.Second
	checkTimeout = 30 * time.Second
)

type applyFlags struct {
	trial                      time.Duration
	restart, dryRun, keepGoing bool
}

// planned is a change of a site's configuration that the site has checked.
type planned struct {
	Diff    string   `json:"diff,omitzero"`    // "" for no change
	Restart string   `json:"restart,omitzero"` // what needs a restart of the site
	Notes   []string `json:"warnings,omitzero"`
	change  acts.NewConfiguration
}

// applied holds the result of a change at a site.
type applied struct {
	State string `json:"state"` // unchanged, kept, rolled_back, replaced or not_applied
	Says  string `json:"says,omitzero"`
}

func (f *fleetFlags) applyCommand() *cobra.Command {
	var o applyFlags
	cmd := &cobra.Command{
		Use: "apply FILE|FOLDER", Args: exactly("FILE or FOLDER"),
		Short: "Replace the configuration of your sites; each goes back by itself if it is not well",
		Long: `Replace the configuration of your sites by a file, or by the file NAME.yaml of a folder for each
site. A site keeps its own name under site:.

All sites check it first. If one refuses it or does not answer, nothing is changed anywhere,
unless --keep-going leaves that one out. Each site then tries it: after --trial it puts its
configuration before back, unless this command reaches it again and what was well there is well.
A site that is cut off by its new configuration goes back by itself.`,
		Example: "  agentsite fleet apply greenhouse.yaml --sites 'green*' --dry-run\n" +
			"  agentsite fleet apply greenhouse.yaml --sites 'green*'\n  agentsite fleet apply configurations/",
		RunE: f.command(func(ctx context.Context, r *fleetRun, args []string) error {
			texts, err := configurations(args[0], r.sites)
			if err != nil {
				return err
			}
			return r.apply(ctx, o, func(file, site string, now []byte) ([]byte, error) {
				return config.KeepName(file, []byte(texts[site]), now)
			})
		}),
		ValidArgsFunction: completeYAML,
	}
	o.register(cmd)
	cmd.Flags().BoolVar(
		&o.restart, "restart", false, "permit changes that need a restart; outputs go to their safe values",
	)
	o.dryRunFlag(cmd)
	return cmd
}

// register adds the flags that all changes of configurations have.
func (o *applyFlags) register(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&o.trial, "trial", defaultTrial, "how long a site waits until it goes back")
	cmd.Flags().BoolVar(&o.keepGoing, "keep-going", false, "change the other sites also where some refuse it")
}

func (o *applyFlags) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would change at each site")
}

func (o *applyFlags) check() error {
	if o.trial < rollback.MinLength || o.trial > rollback.MaxLength {
		return usagef("--trial takes a time from 10s to 1h, not %v", o.trial)
	}
	return nil
}

// editText returns a site's new configuration, from the one that it has now.
type editText func(file, site string, now []byte) ([]byte, error)

// configurations returns the text for each site, by its name: that of the file, or NAME.yaml in the folder.
func configurations(path string, sites []peer.Contact) (map[string]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	all := make(map[string]string)
	var missing []string
	for _, k := range sites {
		file := path
		if info.IsDir() {
			file = filepath.Join(path, k.Name+".yaml")
		}
		text, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, k.Name+".yaml")
		case err != nil:
			return nil, state.Mistake{Err: err}
		}
		all[k.Name] = string(text)
	}
	if missing != nil {
		return nil, usagef(
			"%s lacks %s: write them, or leave these sites out with --sites", path, strings.Join(missing, ", "),
		)
	}
	return all, nil
}

// apply has all sites check their new configurations, and then try them.
func (r *fleetRun) apply(ctx context.Context, o applyFlags, edit editText) error {
	if err := o.check(); err != nil {
		return err
	}
	plans, err := callFleet(ctx, r, fleet.Options{Timeout: checkTimeout},
		func(ctx context.Context, c *peer.Connection, k peer.Contact) (planned, error) {
			return planChange(ctx, c, k, o, edit)
		})
	if err != nil {
		return err
	}
	refused := fleetOutcome(plans, nil)
	if o.dryRun {
		if err := r.showPlans(plans); err != nil {
			return err
		}
		return refused
	}
	results := make([]fleet.Result[applied], len(plans))
	some := *r
	some.sites = nil
	changes := make(map[string]acts.NewConfiguration)
	for i, p := range plans {
		results[i] = fleet.Result[applied]{Site: p.Site, Err: p.Err, Value: applied{State: "unchanged"}}
		switch {
		case p.Err != nil || p.Value.Diff == "":
		case refused != nil && !o.keepGoing:
			results[i].Value = applied{State: "not_applied", Says: "another site refuses it, or does not answer"}
		default:
			some.sites = append(some.sites, p.Site)
			changes[p.Site.Name] = p.Value.change
		}
	}
	if len(some.sites) > 0 {
		tried, err := callFleet(ctx, &some, fleet.Options{Timeout: fleet.TryTimeout(o.trial), Changes: true},
			func(ctx context.Context, _ *peer.Connection, k peer.Contact) (applied, error) {
				dial := func(ctx context.Context) (*peer.Connection, error) { return r.dialer.Dial(ctx, k) }
				s, err := fleet.Try(ctx, dial, changes[k.Name])
				return applied{string(s.State), s.Because}, err
			})
		if err != nil {
			return err
		}
		for i := range results {
			for _, t := range tried {
				if t.Site.DID == results[i].Site.DID {
					results[i] = t
				}
			}
		}
	}
	err = showFleet(r, results, "", []string{"SITE", "RESULT", "SAYS"}, func(a applied) [][]string {
		return [][]string{{strings.ReplaceAll(a.State, "_", " "), a.Says}}
	})
	if err != nil {
		return err
	}
	return fleetOutcome(results, func(a applied) bool {
		return a.State == string(rollback.RolledBack) || a.State == string(rollback.Replaced)
	})
}

// planChange edits the configuration of a site, and has the site check the result. Its error says why the site would
// not take it.
func planChange(
	ctx context.Context, c *peer.Connection, k peer.Contact, o applyFlags, edit editText,
) (p planned, err error) {
	now, err := ownerclient.Call(ctx, c.Owner, acts.ConfigurationAct, acts.None{})
	if err != nil {
		return p, err
	}
	if len(now.Text) > config.MaxBytes {
		return p, fleet.Refused("its configuration is too long to be compared")
	}
	then, err := edit(k.Name+".yaml", k.Name, []byte(now.Text))
	if err != nil {
		return p, state.Mistake{Err: err}
	}
	p.change = acts.NewConfiguration{
		Text: string(then), Digest: acts.Digest([]byte(now.Text)), Trial: o.trial.Seconds(), Restart: o.restart,
	}
	if p.change.Text == now.Text {
		return p, nil
	}
	p.Diff = string(diff.Diff(k.Name+" now", []byte(now.Text), k.Name+" then", then))
	found, err := ownerclient.Call(
		ctx, c.Owner, acts.CheckAct, acts.NewConfiguration{Text: p.change.Text, Restart: o.restart},
	)
	if err != nil {
		return p, err
	}
	p.Restart, p.Notes = found.Restart, found.Warnings
	var wrong []string
	for _, m := range found.Mistakes {
		says := m.Says
		if m.Line > 0 {
			says = fmt.Sprintf("line %d: %s", m.Line, m.Says)
		}
		if p.Restart != "" && m.Says == p.Restart {
			says += " (--restart permits that)"
		}
		wrong = append(wrong, says)
	}
	if wrong != nil {
		return p, fleet.Refused(strings.Join(wrong, "; "))
	}
	return p, nil
}

// showPlans prints what would change at each site.
func (r *fleetRun) showPlans(plans []fleet.Result[planned]) error {
	if !r.json {
		for _, p := range plans {
			if p.Err == nil && p.Value.Diff != "" {
				if _, err := io.WriteString(r.out, cleanLines(p.Value.Diff)+"\n"); err != nil {
					return err
				}
			}
		}
	}
	return showFleet(r, plans, "", []string{"SITE", "CHANGE", "SAYS"}, func(p planned) [][]string {
		change := "would change"
		if p.Diff == "" {
			change = "unchanged"
		}
		says := p.Notes
		if p.Restart != "" {
			says = append([]string{"restarts: " + p.Restart}, says...)
		}
		return [][]string{{change, strings.Join(says, "; ")}}
	})
}
