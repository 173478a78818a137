package ops

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentsite/device/driver"
	"agentsite/node/journal"
	"agentsite/node/journal/journaltest"
	"agentsite/node/state"
)

// TestJournalFindings reads a journal before its first entry, with a call whose end is missing, and
// with a changed byte. The last is a finding, and reading it fails.
func TestJournalFindings(t *testing.T) {
	f := state.Folder(t.TempDir())
	if all := journalFindings(f); all != nil {
		t.Errorf("without a journal: %+v", all)
	}
	j, err := journal.Open(f.Path(state.JournalFolder))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Begin(journal.Call{Who: "ann", Tool: "switch_output"}); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := j.Run(ended); err != nil {
		t.Fatal(err)
	}
	all, report, err := ReadJournal(f, time.Time{}, 10)
	if err != nil || len(all) != 1 || all[0].Tool != "switch_output" || all[0].Outcome != "no result" || report.Last == 0 {
		t.Errorf("%+v %+v %v", all, report, err)
	}
	journaltest.Damage(t, f.Path(state.JournalFolder))
	if all := journalFindings(f); len(all) != 1 || all[0].Severity != driver.Problem {
		t.Errorf("with a changed byte: %+v", all)
	}
	if _, _, err := ReadJournal(f, time.Time{}, 10); !errors.Is(err, journal.ErrDamaged) {
		t.Error(err)
	}
}
