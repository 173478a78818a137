package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/journal"
	"agentsite/node/state"

	"github.com/go-json-experiment/json/jsontext"
)

// JournalEntry is a call with its outcome, a group of refusals counted together, or an event.
type JournalEntry struct {
	Seq     uint64         `json:"seq"`
	Time    time.Time      `json:"time"` // by the site's clock then
	Who     string         `json:"who,omitzero"`
	Via     []string       `json:"via,omitzero"` // the agents through which Who asked
	Tool    string         `json:"tool,omitzero"`
	Args    jsontext.Value `json:"arguments,omitzero"`
	Key     string         `json:"key,omitzero"`
	Outcome string         `json:"outcome"` // done, refused, event, no result, or the kind of a fault
	Says    string         `json:"says,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
	Count   int            `json:"count,omitzero"` // of refusals, or of repetitions of an earlier call
}

// noResult is the outcome of a call that has not ended, or during which the site ended.
const noResult = "no result"

// ReadJournal reads the folder's journal from its beginning and checks its chain, beside a
// running site or without one. It returns the last limit entries that are not older than
// since, by this machine's clock, or the site's where the last entry shows that it is ahead. When it fails they are those before the damage.
func ReadJournal(f state.Folder, since time.Time, limit int) ([]JournalEntry, journal.Report, error) {
	var all []*JournalEntry
	open := make(map[uint64]*JournalEntry) // calls without a result
	report, err := journal.Read(f.Path(state.JournalFolder), func(e journal.Entry) error {
		if e.Kind == journal.Result {
			if r := open[e.Of]; r != nil {
				r.setOutcome(e)
				delete(open, e.Of)
			}
			return nil
		}
		r := &JournalEntry{Seq: e.Seq, Time: e.Time().UTC(), Who: e.Who, Via: e.Via, Tool: e.Tool, Args: e.Args, Key: e.Key, Says: e.Says}
		switch e.Kind {
		case journal.Intent:
			r.Outcome = noResult
			open[e.Seq] = r
		case journal.Done:
			r.setOutcome(e)
			r.Count = e.Count
		case journal.Denied:
			r.Outcome, r.Says, r.Count = "refused", e.Fault, e.Count
		default:
			r.Outcome = string(e.Kind)
		}
		all = append(all, r)
		if len(all) > 2*limit { // a call that is older has its result by now, or never
			for _, old := range all[:len(all)-limit] {
				delete(open, old.Seq)
			}
			all = slices.Delete(all, 0, len(all)-limit)
		}
		return nil
	})
	if n := len(all); n > 0 { // the site's clock may be ahead of this machine's, and then since is, too
		since = since.Add(max(0, time.Until(all[n-1].Time)))
	}
	var last []JournalEntry
	for _, r := range all[max(0, len(all)-limit):] {
		if !r.Time.Before(since) {
			last = append(last, *r)
		}
	}
	switch {
	case errors.Is(err, journal.ErrDamaged):
		err = fmt.Errorf("%w; earlier entries are unchanged. Outputs stay at their safe values until you move %s away and restart the site", err, f.Path(state.JournalFolder))
	case errors.Is(err, fs.ErrPermission):
		err = device.Faultf(device.Denied, "only the site's user may read the journal: %w; run this as that user", err)
	}
	return last, report, err
}

// journalFindings reports a damaged journal.
func journalFindings(f state.Folder) []driver.Finding {
	if _, _, err := ReadJournal(f, time.Time{}, 1); errors.Is(err, journal.ErrDamaged) {
		return []driver.Finding{{Severity: driver.Problem, Subject: f.Path(state.JournalFolder), Says: err.Error(), Do: "agentsite journal shows the intact entries; then move the folder away and restart the site"}}
	}
	return nil
}

func (r *JournalEntry) setOutcome(e journal.Entry) {
	r.Outcome, r.Says, r.Result = "done", e.Says, e.Value
	if e.Fault != "" {
		r.Outcome = e.Fault
	}
}
