package journal

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/node"
)

// Recorder implements node.Journal by a Journal. While it cannot be opened or written, calls that
// move an output away from safe fail with an Unavailable fault; other calls go on. Each call tries
// the disk again.
type Recorder struct {
	*Journal
	// Now returns the site's time, and whether it is known. It is set before Open; nil is the
	// machine's clock.
	Now      func() (time.Time, bool)
	folder   string
	unopened error
	reading  chan struct{} // has the place of the one Calls that reads
	failing  atomic.Bool   // a failed write was logged, and none has succeeded since
}

var _ node.Journal = (*Recorder)(nil)

// NewRecorder returns a Recorder that refuses calls until Open.
func NewRecorder() *Recorder {
	return &Recorder{unopened: errors.New("it is not open yet"), reading: make(chan struct{}, 1)}
}

// Open opens the journal in a folder. It comes before all other methods and may take
// seconds on a small board. A journal that is damaged stays closed until the next start.
func (r *Recorder) Open(folder string) {
	if r.Now == nil {
		r.Now = func() (time.Time, bool) { return time.Now(), true }
	}
	r.folder = folder
	r.Journal, r.unopened = openAt(folder, r.Now)
	if r.unopened != nil {
		slog.Error("journal cannot be opened; no output moves away from safe until the next start", "err", r.unopened)
	}
}

// Run writes the entries of Add and Deny, until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	if r.unopened != nil {
		return
	}
	if err := r.Journal.Run(ctx); err != nil {
		slog.Error("journal's last entries were not written", "err", err)
	}
}

// Replay implements node.Journal.
func (r *Recorder) Replay(a node.Asked) (*node.Outcome, error) {
	if r.unopened != nil {
		return nil, r.fault(r.unopened)
	}
	earlier, err := r.Journal.Replay(a)
	return earlier, r.fault(err)
}

// Begin implements node.Journal.
func (r *Recorder) Begin(a node.Asked) (end func(node.Outcome), earlier *node.Outcome, err error) {
	if r.unopened != nil {
		return nil, nil, r.fault(r.unopened)
	}
	ticket, was, err := r.Journal.Begin(a)
	if was != nil || err != nil {
		return nil, was, r.fault(err)
	}
	if r.failing.Swap(false) {
		slog.Info("journal can be written again")
	}
	return func(o node.Outcome) {
		if err := r.End(ticket, o); err != nil {
			r.logFailure(err)
		}
	}, nil, nil
}

// Add implements node.Journal.
func (r *Recorder) Add(a node.Asked, o node.Outcome) {
	if r.unopened == nil {
		r.Journal.Add(a, o)
	}
}

// Note writes an event. It blocks for the disk.
func (r *Recorder) Note(says string) error {
	if r.unopened != nil {
		return r.unopened
	}
	return r.Journal.Note(says)
}

// Usage returns how many entries were ever written, and how many bytes the files of the kept ones have. It
// waits for no write.
func (r *Recorder) Usage() (entries uint64, bytes int64) {
	if r.unopened != nil {
		return 0, 0
	}
	files, _ := segments(r.folder)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return r.entries.Load(), bytes
}

// Deny implements node.Journal.
func (r *Recorder) Deny(who, tool string, kind device.FaultKind) {
	if r.unopened == nil {
		r.Journal.Deny(who, tool, string(kind))
	}
}

// Recent implements node.Journal.
func (r *Recorder) Recent(about string) []node.Recorded {
	if r.unopened != nil {
		return nil
	}
	now, _ := r.Now()
	return r.Journal.recent.about(about, now)
}

// Calls returns the last items of the journal that a filter chooses, at most MaxPage, and verifies all
// entries up to the last that was written. It reads the whole journal, but for a part of its chain, which may
// take seconds on a small board, one call at a time, until ctx ends.
func (r *Recorder) Calls(ctx context.Context, f Filter) (Page, error) {
	most := MaxPage
	if f.Chain {
		most = MaxChain
	}
	switch {
	case f.Limit < 0 || f.Limit > most:
		return Page{}, device.Faultf(device.Invalid, "limit: at most %d entries in one page", most)
	case f.Chain && (f.Output != "" || f.Who != "" || !f.From.IsZero() || !f.To.IsZero()):
		return Page{}, device.Faultf(device.Invalid, "chain: takes no output, who, from and to: it has all entries")
	case f.Limit == 0:
		f.Limit = 100
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return Page{}, ctx.Err()
	}
	var written anchor
	if r.unopened == nil {
		r.mu.Lock()
		written = anchor{r.seq, r.before}
		r.mu.Unlock()
	}
	now, _ := r.Now()
	page, _, err := calls(ctx, r.folder, f, now, written)
	switch {
	case errors.Is(err, ErrOther):
		err = device.Faultf(device.Unavailable, "%w", err)
	case errors.Is(err, ErrDamaged):
		err = device.Faultf(device.Unavailable, "%w; agentsite journal on the site's machine shows the entries before that", err)
	}
	page.clip()
	return page, err
}

// fault returns the caller's fault for an error of the journal, without names of files,
// which only the log has.
func (r *Recorder) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrReused):
		return device.Faultf(device.Invalid, "%w", err)
	case errors.Is(err, ErrPending):
		return device.Faultf(device.Busy, "%w", err)
	case errors.Is(err, ErrUnknown):
		return device.Faultf(device.UnknownOutcome, "%w", err)
	}
	r.logFailure(err)
	var path *fs.PathError
	why := "its disk does not take it"
	if errors.Is(err, ErrDamaged) {
		why = "it is damaged: agentsite journal --verify says where"
	} else if errors.As(err, &path) {
		why = path.Err.Error()
	}
	return device.Faultf(device.Unavailable, "the site's journal cannot be written (%s), so nothing moves away from safe; ask the owner to check its disk. A return to safe and the emergency stop work", why)
}

// logFailure logs the first failure since the last success.
func (r *Recorder) logFailure(err error) {
	if !r.failing.Swap(true) {
		slog.Error("journal cannot be written; no output moves away from safe", "err", err)
	}
}
