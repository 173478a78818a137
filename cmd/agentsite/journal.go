package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/ops"
	"agentsite/node/acts"
	"agentsite/node/journal"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) journalCommand() *cobra.Command {
	var since duration
	var f journal.Filter
	var known string
	var verify bool
	cmd := &cobra.Command{
		Use: "journal", GroupID: groupEveryday, Args: noArgs,
		Short: "Show who moved what, or verify the journal",
		Long: `Show the journal, the oldest entry first: moves and returns to safe with caller and
outcome, refusals with their number, and outputs that returned to safe by themselves.
Reads are not recorded. Without --site the journal is read from the site's data folder,
with or without a running site.

Each entry is chained to the one before. --verify reads all entries and exits with 1 where
one was changed, removed or inserted. Entries cut off at the end are detected up to the
last anchor, which is written within a minute. It prints the number and the hash of the
last entry: --known with these tells later whether all entries up to it are the same.
With --site, this machine hashes what the site gives, and takes no word for it.`,
		Example: "  agentsite journal --since 1h\n  agentsite journal --output pump/relay --site greenhouse\n" +
			"  agentsite journal --verify",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Limit < 1 {
				return usagef("--limit takes a number above 0")
			}
			from := func(now time.Time) {
				if since > 0 {
					f.From = now.Add(-time.Duration(since))
				}
			}
			if err := parseKnown(known, &f); err != nil {
				return err
			}
			verify = verify || f.Known != 0
			show := func(page journal.Page, report journal.Report, err error) error {
				if verify {
					return a.showVerified(page, report, err)
				}
				return errors.Join(a.showJournal(page.Items), err)
			}
			if a.site != "" || a.peer != "" {
				return a.asOwner(func(ctx context.Context, s *session, _ []string) error {
					if since > 0 {
						site, err := callOwner(ctx, s, acts.AccessAct, acts.AccessParams{})
						if err != nil {
							return err
						}
						from(site.Time)
					}
					ask := func(f journal.Filter) (journal.Page, error) { return callOwner(ctx, s, acts.JournalAct, f) }
					if verify {
						page, err := journal.Verify(f, ask)
						return show(page, journal.Report{}, err)
					}
					page, err := ask(f)
					return show(page, journal.Report{}, err)
				})(cmd, args)
			}
			return a.onMachine(a.siteFolder, func(_ context.Context, folder state.Folder, _ []string) error {
				from(time.Now())
				page, report, err := ops.JournalPage(folder, f)
				return show(page, report, err)
			})(cmd, args)
		},
	}
	cmd.Flags().Var(&since, "since", "the maximum age of entries by the site's clock, such as 1h")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "the maximum number of entries")
	cmd.Flags().StringVar(&f.Output, "output", "", "entries about this output")
	cmd.Flags().StringVar(&f.Who, "who", "", "entries of this caller, as --json names it")
	cmd.Flags().BoolVar(&verify, "verify", false, "verify the chain of all entries")
	cmd.Flags().StringVar(&known, "known", "", "NUMBER:HASH, as an earlier --verify printed them")
	return cmd
}

// parseKnown sets the entry that the user noted.
func parseKnown(text string, f *journal.Filter) (err error) {
	number, hash, ok := strings.Cut(text, ":")
	if text == "" {
		return nil
	}
	if f.Known, err = strconv.ParseUint(number, 10, 64); err == nil {
		f.KnownHash, err = hex.DecodeString(hash)
	}
	if !ok || err != nil || f.Known == 0 {
		return usagef("--known takes NUMBER:HASH, as agentsite journal --verify prints them")
	}
	return nil
}

func (a *app) showJournal(all []ops.JournalEntry) error {
	head := []string{"TIME", "WHO", "WHAT", "ARGUMENTS", "OUTCOME"}
	return printList(a, all, "the journal has no such entries", head, journalCells)
}

// journalCells returns an entry's time, caller, act, arguments and outcome.
func journalCells(e ops.JournalEntry) []string {
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
}

type verifiedResult struct {
	OK       bool   `json:"ok"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Segments int    `json:"segments,omitzero"` // of the site's own machine, as the next
	Torn     int64  `json:"torn_bytes,omitzero"`
	Hash     string `json:"hash,omitzero"` // of the last entry
	Says     string `json:"says,omitzero"`
}

func (a *app) showVerified(p journal.Page, r journal.Report, err error) error {
	hash := hex.EncodeToString(p.Hash)
	if a.json {
		out := verifiedResult{err == nil, p.First, p.Last, r.Segments, r.Torn, hash, ""}
		if err != nil {
			out.Says = err.Error()
		}
		return errors.Join(a.printJSON(out), err)
	}
	if err != nil {
		return err
	}
	if p.Last == 0 {
		return a.say("the journal is empty")
	}
	text := fmt.Sprintf("entries %d to %d are unchanged", p.First, p.Last)
	if r.Torn > 0 {
		text += fmt.Sprintf("; %d bytes of an incomplete entry follow", r.Torn)
	}
	return errors.Join(a.say("%s", text), a.say("%d:%s", p.Last, hash))
}
