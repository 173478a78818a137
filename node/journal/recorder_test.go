package journal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentsite/device"
	"agentsite/node"
	"agentsite/node/journal/journaltest"
)

// TestRecorderFaults: the faults that callers get for the journal's errors.
func TestRecorderFaults(t *testing.T) {
	w := NewRecorder()
	for _, tt := range []struct {
		err  error
		kind device.FaultKind
		says string
	}{
		{ErrReused, device.Invalid, "use a new key"},
		{ErrPending, device.Busy, "try again"},
		{ErrUnknown, device.UnknownOutcome, "its outcome is unknown"},
		{&fs.PathError{Op: "write", Path: "/secret/journal", Err: syscall.ENOSPC}, device.Unavailable, "no space left"},
		{errors.New("anything"), device.Unavailable, "its disk"},
	} {
		f := device.AsFault(w.fault(tt.err))
		if f.Kind != tt.kind || !strings.Contains(f.Msg, tt.says) || strings.Contains(f.Msg, "/secret") {
			t.Errorf("%v: %s: %s", tt.err, f.Kind, f.Msg)
		}
	}
	if err := w.fault(nil); err != nil {
		t.Error(err)
	}
}

// TestDamagedJournal: it is not written on, and all but moves away from safe goes on.
func TestDamagedJournal(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	w := NewRecorder()
	w.Open(folder)
	if _, _, err := w.Begin(node.Asked{Who: "ann", Tool: "switch_output"}); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended)
	file, damaged := journaltest.Damage(t, folder)
	w = NewRecorder()
	w.Open(folder)
	for range 2 {
		_, _, err := w.Begin(node.Asked{Who: "ann", Tool: "switch_output", Key: "k"})
		if err == nil || device.AsFault(err).Kind != device.Unavailable || !strings.Contains(err.Error(), "agentsite journal --verify") {
			t.Error(err)
		}
	}
	if _, err := w.Replay(node.Asked{Who: "ann", Tool: "switch_output", Key: "k"}); err == nil {
		t.Error("a damaged journal is believed")
	}
	w.Add(node.Asked{}, node.Outcome{})
	w.Deny("ann", "switch_output", device.Denied)
	w.Run(t.Context())
	if after, err := os.ReadFile(file); err != nil || string(after) != string(damaged) {
		t.Errorf("it was written on: %v", err)
	}
}

// TestUsage: a closed journal uses nothing, an open one what its files have.
func TestUsage(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	w := NewRecorder()
	if n, bytes := w.Usage(); n != 0 || bytes != 0 {
		t.Errorf("%d entries, %d bytes", n, bytes)
	}
	w.Open(folder)
	for range 3 {
		if err := w.Note("a note"); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := filepath.Glob(filepath.Join(folder, "*"+extension))
	info, err := os.Stat(all[0])
	if n, bytes := w.Usage(); err != nil || n != 3 || len(all) != 1 || bytes != info.Size() {
		t.Errorf("%d entries, %d bytes: %v, %v", n, bytes, info, err)
	}
	w = NewRecorder()
	w.Open(folder)
	if n, _ := w.Usage(); n != 3 {
		t.Errorf("%d entries after a start", n)
	}
}
