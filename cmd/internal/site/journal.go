package site

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"

	"agentsite/device"
	"agentsite/node"
	"agentsite/node/journal"
	"agentsite/node/state"
)

// written is the journal as the door has it. Where it could not be opened, nothing
// moves away from safe, and all else goes on.
type written struct {
	*journal.Journal
	unopened error
	failing  atomic.Bool // what cannot be written was logged
}

var _ node.Journal = (*written)(nil)

// open comes before all else. It takes a while on a small board.
func (w *written) open(f state.Folder) {
	w.Journal, w.unopened = journal.Open(f.Path(state.JournalFolder))
	if w.unopened != nil {
		slog.Error("the journal cannot be opened: no output moves away from safe before the site is started again", "err", w.unopened)
	}
}

// Run writes what is gathered, until ctx ends.
func (w *written) Run(ctx context.Context) {
	if w.unopened != nil {
		return
	}
	if err := w.Journal.Run(ctx); err != nil {
		slog.Error("the journal is not written to its end", "err", err)
	}
}

func (w *written) Replay(a node.Asked) (*node.Outcome, error) {
	if w.unopened != nil {
		return nil, w.fault(w.unopened)
	}
	earlier, err := w.Journal.Replay(journal.Call(a))
	return (*node.Outcome)(earlier), w.fault(err)
}

func (w *written) Begin(a node.Asked) (end func(node.Outcome), earlier *node.Outcome, err error) {
	if w.unopened != nil {
		return nil, nil, w.fault(w.unopened)
	}
	ticket, was, err := w.Journal.Begin(journal.Call(a))
	if was != nil || err != nil {
		return nil, (*node.Outcome)(was), w.fault(err)
	}
	if w.failing.Swap(false) {
		slog.Info("the journal can be written again")
	}
	return func(o node.Outcome) {
		if err := w.Journal.End(ticket, journal.Outcome(o)); err != nil {
			w.failed(err)
		}
	}, nil, nil
}

func (w *written) Add(a node.Asked, o node.Outcome) {
	if w.unopened == nil {
		w.Journal.Add(journal.Call(a), journal.Outcome(o))
	}
}

// Note writes down what nobody asked for. It blocks for the disk.
func (w *written) Note(says string) error {
	if w.unopened != nil {
		return w.unopened
	}
	return w.Journal.Note(says)
}

func (w *written) Deny(who, tool string, kind device.FaultKind) {
	if w.unopened == nil {
		w.Journal.Deny(who, tool, string(kind))
	}
}

// fault is what a caller is told, without the names of files. The log says all of it.
func (w *written) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrReused):
		return device.Faultf(device.Invalid, "%w", err)
	case errors.Is(err, journal.ErrPending):
		return device.Faultf(device.Busy, "%w", err)
	case errors.Is(err, journal.ErrUnknown):
		return device.Faultf(device.UnknownOutcome, "%w", err)
	}
	w.failed(err)
	var path *fs.PathError
	why := "its disk does not take it"
	if errors.Is(err, journal.ErrDamaged) {
		why = "it is damaged: agentsite journal --verify says where"
	} else if errors.As(err, &path) {
		why = path.Err.Error()
	}
	return device.Faultf(device.Unavailable, "the site's journal cannot be written (%s), so nothing moves away from safe; have the owner see to its disk. A return to safe and the emergency stop work", why)
}

func (w *written) failed(err error) {
	if !w.failing.Swap(true) {
		slog.Error("the journal cannot be written, so no output moves away from safe", "err", err)
	}
}
