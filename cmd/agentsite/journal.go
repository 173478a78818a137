package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/ops"
	"agentsite/node/journal"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) journalCommand() *cobra.Command {
	var since duration
	var limit int
	var verify bool
	cmd := &cobra.Command{
		Use: "journal", GroupID: groupThings, Args: noArgs,
		Short: "Show who moved what, or verify the journal",
		Long: `Show the journal, the oldest entry first: moves and returns to safe with caller and
outcome, refusals with their number, and outputs that returned to safe by themselves.
Reads are not recorded. The journal is read from the site's data folder, with or without
a running site.

Each entry is chained to the one before. --verify reads all entries and exits with 1 where
one was changed, removed or inserted. Entries cut off at the end are detected up to the
last anchor, which is written within a minute.`,
		RunE: a.onMachine(a.siteFolder, func(_ context.Context, folder state.Folder, _ []string) error {
			if limit < 1 {
				return usagef("--limit takes a number above 0")
			}
			var from time.Time
			if since > 0 {
				from = time.Now().Add(-time.Duration(since))
			}
			all, report, err := ops.ReadJournal(folder, from, limit)
			if verify {
				return a.showVerified(report, err)
			}
			return errors.Join(a.showJournal(all), err)
		}),
	}
	cmd.Flags().Var(&since, "since", "the maximum age of entries by the site's clock, such as 1h")
	cmd.Flags().IntVar(&limit, "limit", 50, "the maximum number of entries")
	cmd.Flags().BoolVar(&verify, "verify", false, "verify the chain of all entries")
	return cmd
}

func (a *app) showJournal(all []ops.JournalEntry) error {
	return printList(a, all, "the journal has no such entries", []string{"TIME", "WHO", "WHAT", "ARGUMENTS", "OUTCOME"}, func(e ops.JournalEntry) []string {
		outcome := e.Outcome
		if e.Says != "" {
			outcome += ": " + e.Says
		}
		if e.Count > 1 {
			outcome += ", " + strconv.Itoa(e.Count) + " times"
		}
		who := called(e.Who)
		if len(e.Via) > 0 {
			who += " through " + strings.Join(allCalled(e.Who, e.Via), ", ")
		}
		return []string{e.Time.Local().Format(time.DateTime), who, e.Tool, string(e.Args), outcome}
	})
}

type verifiedResult struct {
	OK       bool   `json:"ok"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Segments int    `json:"segments"`
	Torn     int64  `json:"torn_bytes"`
	Says     string `json:"says,omitzero"`
}

func (a *app) showVerified(r journal.Report, err error) error {
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
	text := "the journal is empty"
	if r.Last > 0 {
		text = fmt.Sprintf("entries %d to %d are unchanged", r.First, r.Last)
	}
	if r.Torn > 0 {
		text += fmt.Sprintf("; %d bytes of an incomplete entry follow", r.Torn)
	}
	return a.say("%s", text)
}
