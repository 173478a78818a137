package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"agentsite/cmd/internal/ops"
	"agentsite/node/journal"

	"github.com/spf13/cobra"
)

func (a *app) journalCommand() *cobra.Command {
	var since duration
	var limit int
	var verify bool
	cmd := &cobra.Command{
		Use: "journal", GroupID: groupThings, Args: noArgs,
		Short: "Show who has moved what, or verify that nobody changed the record",
		Long: `Show what was asked and done, the oldest first: moves and returns to safe, with who
asked and what came of it, refusals, counted, and what went to safe by itself. Reads
are not in it. It is read from the site's data folder, beside the site or without it.

Each entry is chained to the one before. --verify reads all of them and ends with 1
where one was changed, taken out or put in. Entries cut off at the end are missed up
to the last anchor, which follows within a minute.`,
		RunE: func(*cobra.Command, []string) error {
			if err := a.local("journal"); err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit takes a number above 0")
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			var from time.Time
			if since > 0 {
				from = time.Now().Add(-time.Duration(since))
			}
			all, report, err := ops.ReadJournal(folder, from, limit)
			if verify {
				return a.verified(report, err)
			}
			return errors.Join(a.showJournal(all), err)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().Var(&since, "since", "no older than this, such as 1h, by the site's clock")
	cmd.Flags().IntVar(&limit, "limit", 50, "the last so many")
	cmd.Flags().BoolVar(&verify, "verify", false, "read all of it, and say whether it is as it was written")
	cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return cmd
}

func (a *app) showJournal(all []ops.JournalEntry) error {
	var rows [][]string
	for _, r := range all {
		if a.json {
			if err := a.printJSON(r); err != nil {
				return err
			}
			continue
		}
		outcome := r.Outcome
		if r.Says != "" {
			outcome += ": " + r.Says
		}
		if r.Count > 1 {
			outcome += ", " + strconv.Itoa(r.Count) + " times"
		}
		rows = append(rows, []string{r.Time.Local().Format(time.DateTime), r.Who, r.Tool, string(r.Args), outcome})
	}
	switch {
	case a.json:
		return nil
	case len(rows) == 0:
		return a.say("there is nothing in it")
	}
	return table(a.out, []string{"TIME", "WHO", "WHAT", "ARGUMENTS", "OUTCOME"}, rows)
}

type verifiedResult struct {
	OK       bool   `json:"ok"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Segments int    `json:"segments"`
	Torn     int64  `json:"torn_bytes"`
	Says     string `json:"says,omitzero"`
}

func (a *app) verified(r journal.Report, err error) error {
	if a.json {
		out := verifiedResult{OK: err == nil, First: r.First, Last: r.Last, Segments: r.Segments, Torn: r.Torn}
		if err != nil {
			out.Says = err.Error()
		}
		return errors.Join(a.printJSON(out), err)
	}
	if err != nil {
		return err
	}
	says := "there is nothing in it"
	if r.Last > 0 {
		says = fmt.Sprintf("entries %d to %d are as they were written", r.First, r.Last)
	}
	if r.Torn > 0 {
		says += fmt.Sprintf("; %d bytes of one more were not complete", r.Torn)
	}
	return a.say("%s", says)
}
