package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/journal"
	"agentsite/node/state"
)

// JournalEntry is a call with its outcome, a group of refusals counted together, or an event.
type JournalEntry = journal.Item

// ReadJournal returns the last limit entries of the folder's journal that are not older than since,
// as JournalPage does.
func ReadJournal(f state.Folder, since time.Time, limit int) ([]JournalEntry, journal.Report, error) {
	page, report, err := JournalPage(f, journal.Filter{From: since, Limit: limit})
	return page.Items, report, err
}

// JournalPage reads the folder's journal from its beginning and checks its chain, beside a running
// site or without one. It returns the last entries that the filter chooses, by this machine's clock,
// or the site's where the last entry shows that it is ahead. When it fails they are those before the
// damage.
func JournalPage(f state.Folder, q journal.Filter) (journal.Page, journal.Report, error) {
	page, report, err := journal.Calls(f.Path(state.JournalFolder), q, time.Now())
	switch {
	case errors.Is(err, journal.ErrDamaged):
		err = fmt.Errorf("%w; earlier entries are unchanged. Outputs stay at their safe values until you move %s away and restart the site", err, f.Path(state.JournalFolder))
	case errors.Is(err, fs.ErrPermission):
		err = device.Faultf(device.Denied, "only the site's user may read the journal: %w; run this as that user", err)
	}
	return page, report, err
}

// journalFindings reports a damaged journal.
func journalFindings(f state.Folder) []driver.Finding {
	if _, _, err := ReadJournal(f, time.Time{}, 1); errors.Is(err, journal.ErrDamaged) {
		return []driver.Finding{{Severity: driver.Problem, Subject: f.Path(state.JournalFolder), Says: err.Error(), Do: "agentsite journal shows the intact entries; then move the folder away and restart the site"}}
	}
	return nil
}
