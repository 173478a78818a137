package main

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/fleet"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/peer"
	"agentsite/device/driver"
	"agentsite/node/acts"
	"agentsite/node/journal"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

func (f *fleetFlags) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Args: noArgs,
		Short: "Show how your sites are",
		Long: `Show how your sites are: well, or with their worst problem. AWAY counts the outputs that are
away from safe, WAITING the calls and programs that wait for you: agentsite approve --site NAME.`,
		Example: "  agentsite fleet status\n  agentsite fleet status --sites 'green*' --json",
		RunE: f.command(func(ctx context.Context, r *fleetRun, _ []string) error {
			results, err := callFleet(ctx, r, fleet.Options{}, readFleetStatus)
			if err != nil {
				return err
			}
			head := []string{"SITE", "STATE", "VERSION", "UP", "AWAY", "WAITING", "SAYS"}
			if err := showFleet(r, results, "", head, statusCells); err != nil {
				return err
			}
			return fleetOutcome(results, func(s ops.SiteStatus) bool { return problems(s) > 0 })
		}),
	}
}

func readFleetStatus(ctx context.Context, c *peer.Connection, _ peer.Contact) (ops.SiteStatus, error) {
	return ops.ReadStatus(ctx, &ops.RunningSite{Owner: c.Owner, Site: c, Closer: c})
}

// worst returns a site's state in one word: its emergency stop, or its worst finding above a note.
func worst(s ops.SiteStatus) string {
	severity := driver.Note
	if len(s.Wrong) > 0 {
		severity = s.Wrong[0].Severity
	}
	switch {
	case s.Stopped && severity != driver.Problem:
		return "stopped"
	case severity == driver.Note:
		return "well"
	}
	return string(severity)
}

func statusCells(s ops.SiteStatus) [][]string {
	says := ""
	if worst(s) != "well" && len(s.Wrong) > 0 {
		says = s.Wrong[0].Subject + ": " + s.Wrong[0].Says
		if more := len(s.Wrong) - 1; more > 0 {
			says += " (and " + strconv.Itoa(more) + " more)"
		}
	}
	if s.Simulated {
		says = strings.TrimSuffix("simulated; "+says, "; ")
	}
	waiting := len(s.Waiting) + len(s.SignIns) + len(s.Wishes)
	return [][]string{{
		worst(s), s.Version, span(s.Uptime), strconv.Itoa(len(s.Moved)), strconv.Itoa(waiting), says,
	}}
}

func (f *fleetFlags) readCommand() *cobra.Command {
	return &cobra.Command{
		Use: "read [DEVICE|DEVICE/POINT...]", Short: "Show the latest readings of your sites",
		Long: `Show the latest readings of points, of all points of a device, or of everything, at each site
that has them. * stands for any characters: '*/temperature'.`,
		Example: "  agentsite fleet read climate/temperature\n  agentsite fleet read '*/humidity' --tag greenhouse",
		RunE: f.command(func(ctx context.Context, r *fleetRun, words []string) error {
			for _, w := range words {
				if _, err := path.Match(w, ""); err != nil {
					return usagef("%q is no point: write DEVICE, DEVICE/POINT or '*/POINT'", w)
				}
			}
			read := func(ctx context.Context, c *peer.Connection, _ peer.Contact) ([]agents.Reading, error) {
				return readMatching(ctx, c, words)
			}
			results, err := callFleet(ctx, r, fleet.Options{}, read)
			if err != nil {
				return err
			}
			outcome := fleetOutcome(results, nil)
			found := slices.ContainsFunc(results, func(of fleet.Result[[]agents.Reading]) bool { return len(of.Value) > 0 })
			none := "no site has such a point: agentsite --site NAME points lists those of one"
			if outcome == nil && !found && len(words) > 0 {
				return usagef("%s", none)
			}
			head := []string{"SITE", "POINT", "VALUE", "AGE", "NOTE"}
			if err := showFleet(r, results, none, head, readingCells); err != nil {
				return err
			}
			return outcome
		}),
	}
}

// readMatching reads the points of a site that match one of the words, or everything without words. A site without
// such a point has no readings.
func readMatching(ctx context.Context, c *peer.Connection, words []string) ([]agents.Reading, error) {
	list, err := c.Points(ctx, nobody, agents.SiteRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range list.Points {
		dev, _, _ := strings.Cut(p.Point, "/")
		matches := func(word string) bool {
			whole, _ := path.Match(word, p.Point)
			device, _ := path.Match(word, dev)
			return whole || device
		}
		if point(p).readable() && (len(words) == 0 || slices.ContainsFunc(words, matches)) {
			names = append(names, p.Point)
		}
	}
	if len(names) == 0 {
		return []agents.Reading{}, nil
	}
	now, err := c.Read(ctx, nobody, agents.ReadRequest{Points: names})
	return now.Readings, err
}

func readingCells(all []agents.Reading) (rows [][]string) {
	for _, of := range all {
		r := reading(of)
		rows = append(rows, []string{r.Point, show(r.Value, r.Unit), r.age(), r.note(0)})
	}
	return rows
}

// doctorTimeout bounds a diagnosis of one board, which tries its buses.
const doctorTimeout = 20 * time.Second

func (f *fleetFlags) doctorCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "doctor", Args: noArgs, Short: "Find problems of your boards, with a remedy",
		Long: `Find problems of your boards and their configurations, with a remedy: for each site its
problems, and with --all its warnings and notes, too.`,
		Example: "  agentsite fleet doctor\n  agentsite fleet doctor --all --sites shed",
		RunE: f.command(func(ctx context.Context, r *fleetRun, _ []string) error {
			ask := func(ctx context.Context, c *peer.Connection, _ peer.Contact) (acts.Diagnosis, error) {
				return ownerclient.Call(ctx, c.Owner, acts.DoctorAct, acts.None{})
			}
			results, err := callFleet(ctx, r, fleet.Options{Timeout: doctorTimeout}, ask)
			if err != nil {
				return err
			}
			isProblem := func(f acts.Finding) bool { return f.Severity == string(driver.Problem) }
			cells := func(d acts.Diagnosis) (rows [][]string) {
				for _, f := range d.Findings {
					if all || isProblem(f) {
						rows = append(rows, []string{f.Severity, f.Subject, f.Says, f.Do})
					}
				}
				return rows
			}
			head := []string{"SITE", "SEVERITY", "SUBJECT", "SAYS", "DO"}
			if err := showFleet(r, results, "no problem found at "+counted(len(results), "site"), head, cells); err != nil {
				return err
			}
			return fleetOutcome(results, func(d acts.Diagnosis) bool { return slices.ContainsFunc(d.Findings, isProblem) })
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also warnings and notes")
	return cmd
}

func (f *fleetFlags) journalCommand() *cobra.Command {
	since, limit := duration(24*time.Hour), 50
	var filter journal.Filter
	cmd := &cobra.Command{
		Use: "journal", Args: noArgs, Short: "Show who moved what at your sites, by time",
		Long: `Show the journals of your sites as one, the oldest entry first. Times are those of each
site's own clock. Reads are not recorded.`,
		Example: "  agentsite fleet journal --since 1h\n  agentsite fleet journal --output pump/relay --sites 'green*'",
		RunE: f.command(func(ctx context.Context, r *fleetRun, _ []string) error {
			if limit < 1 {
				return usagef("--limit takes a number above 0")
			}
			ask := func(ctx context.Context, c *peer.Connection, _ peer.Contact) ([]journal.Item, error) {
				return readJournal(ctx, c, filter, time.Duration(since), limit)
			}
			results, err := callFleet(ctx, r, fleet.Options{}, ask)
			if err != nil {
				return err
			}
			if err := showFleetJournal(r, results, limit); err != nil {
				return err
			}
			return fleetOutcome(results, nil)
		}),
	}
	cmd.Flags().Var(&since, "since", "the maximum age of entries by each site's clock, such as 1h")
	cmd.Flags().IntVar(&limit, "limit", limit, "the maximum number of entries in the table, and of each site with --json")
	cmd.Flags().StringVar(&filter.Output, "output", "", "entries about this output")
	cmd.Flags().StringVar(&filter.Who, "who", "", "entries of this caller, as --json names it")
	return cmd
}

// maxEntries is the number of entries that a site answers at once.
const maxEntries = 500

// readJournal reads the last entries of a site's journal that are not older than since.
func readJournal(
	ctx context.Context, c *peer.Connection, f journal.Filter, since time.Duration, limit int,
) ([]journal.Item, error) {
	now, err := ownerclient.Call(ctx, c.Owner, acts.AccessAct, acts.AccessParams{})
	if err != nil {
		return nil, err
	}
	if f.Limit = min(limit, maxEntries); since > 0 {
		f.From = now.Time.Add(-since)
	}
	page, err := ownerclient.Call(ctx, c.Owner, acts.JournalAct, f)
	return page.Items[max(0, len(page.Items)-limit):], err
}

// showFleetJournal prints the last entries of all journals by time, and then the sites that did not answer.
func showFleetJournal(r *fleetRun, results []fleet.Result[[]journal.Item], limit int) error {
	head := []string{"SITE", "TIME", "WHO", "WHAT", "ARGUMENTS", "OUTCOME"}
	if r.json {
		return showFleet(r, results, "", head, nil)
	}
	type entry struct {
		site string
		journal.Item
	}
	var all []entry
	var failed []fleet.Result[[]journal.Item]
	for _, of := range results {
		for _, item := range of.Value {
			all = append(all, entry{of.Site.Name, item})
		}
		if of.Err != nil {
			failed = append(failed, of)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.Time.Compare(b.Time) })
	if more := len(all) - limit; more > 0 {
		all = all[more:]
		r.note("%d older entries are left out: --limit shows more", more)
	}
	var rows [][]string
	for _, e := range all {
		rows = append(rows, append([]string{e.site}, journalCells(e.Item)...))
	}
	for _, of := range failed {
		rows = append(rows, []string{of.Site.Name, "", "", of.Kind(), "", fleetError(of.Err)})
	}
	if len(rows) == 0 {
		return r.say("the journals have no such entries")
	}
	return fleetTable(r, head, rows)
}
