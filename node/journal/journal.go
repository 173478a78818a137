package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/node/state"
)

const (
	// A segment is closed once it is this long; the oldest are removed beyond
	// maxSegments. At some 300 bytes an entry that is the last 50,000 of them.
	segmentSize = 1 << 20
	maxSegments = 16
	// reread is the number of segments that a start reads, with some 7,000 calls: a small board
	// would need seconds for all.
	reread = 2
	// anchorEvery is the largest number of entries that can be cut off undetected.
	anchorEvery = 256
	// flushEvery is the time for which denials are collected before they are written.
	flushEvery = time.Minute
	// maxWaiting limits the entries of Add that are not on the disk yet.
	maxWaiting = 256
	// repeatEvery is the time for which repeated calls of Add are counted, and maxRepeats bounds
	// the different ones.
	repeatEvery = 10 * time.Minute
	maxRepeats  = 1024
)

// Journal is open for writing. All methods are safe for concurrent use.
type Journal struct {
	folder string
	now    func() (time.Time, bool) // the site's clock, and whether it is known
	soon   chan struct{}            // wakes Run to write now
	work   chan struct{}            // and within a minute
	later  chan struct{}            // and within repeatEvery

	quick   sync.Mutex // never held for the disk
	waiting []Entry    // of Done
	lost    int        // calls beyond maxWaiting
	denied  denials
	repeats map[repeat]*Entry // written within repeatEvery; those since then, as one entry
	recent  recent

	mu       sync.Mutex
	file     *os.File // nil while the disk refuses writes
	at       end      // where to continue
	size     int64
	seq      uint64
	before   hash
	anchored uint64
	due      bool // an anchor
	closed   bool
	buf      []byte
	memory   memory
	clock    clock

	entries atomic.Uint64 // seq, for Usage
}

// Open opens the journal in folder, which it creates, and reads the end of it; Read reads all.
// It removes an incomplete entry at the end, left by a loss of power, and records that in an
// event. A full or read-only disk is no error of Open: writes fail while it is. An error that
// wraps ErrDamaged means that the journal must not be continued: the owner has to look at it
// and move the folder away.
func Open(folder string) (*Journal, error) {
	return openAt(folder, func() (time.Time, bool) { return time.Now(), true })
}

// openAt is Open with the site's clock.
func openAt(folder string, now func() (time.Time, bool)) (*Journal, error) {
	j := &Journal{folder: folder, now: now, clock: clock{known: true}, soon: make(chan struct{}, 1), work: make(chan struct{}, 1), later: make(chan struct{}, 1), memory: newMemory(), denied: denials{}, repeats: make(map[repeat]*Entry)}
	at, report, err := read(folder, newest, func(e Entry, _ frame) error {
		j.memory.recall(e)
		j.recent.recall(e)
		j.clock.recall(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	j.memory.recalled(time.Now())
	j.recent.recalled()
	j.at, j.seq, j.before, j.anchored = at, at.seq, at.before, at.seq
	j.entries.Store(j.seq)
	if report.Torn > 0 {
		says := fmt.Sprintf("%d bytes at the end were not complete and are removed: the power failed, or the program was ended, while they were written", report.Torn)
		j.waiting = []Entry{{Kind: Event, Says: says}}
	}
	if errors.Join(j.resume(), j.writeWaiting()) != nil {
		wake(j.work) // retried in a minute, or by the next write, which returns the error
	}
	return j, nil
}

// resume opens the last segment for writing, without an incomplete entry at its end.
func (j *Journal) resume() error {
	if j.at.size < int64(headerSize) {
		if j.at.file != "" {
			if err := os.Remove(j.at.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := os.MkdirAll(j.folder, 0o700); err != nil {
			return err
		}
		return j.begin()
	}
	f, err := os.OpenFile(j.at.file, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(j.at.size), seekEnd(f)); err != nil {
		f.Close()
		return err
	}
	j.file, j.size = f, j.at.size
	return nil
}

func seekEnd(f *os.File) error {
	_, err := f.Seek(0, 2)
	return err
}

// begin creates the next segment and removes the oldest beyond maxSegments.
func (j *Journal) begin() error {
	f, err := os.OpenFile(segmentName(j.folder, j.seq+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	header := appendHeader(nil, j.seq+1, j.before)
	if _, err := f.Write(header); err != nil {
		f.Close()
		os.Remove(f.Name())
		return err
	}
	if j.file != nil {
		j.file.Close() // synced before
	}
	j.file, j.size = f, int64(len(header))
	files, err := segments(j.folder)
	if err != nil {
		return err
	}
	for len(files) > maxSegments {
		if err := os.Remove(files[0]); err != nil {
			return err
		}
		files = files[1:]
	}
	return state.SyncFolder(j.folder)
}

// write appends one entry and sets its number and time. After an error the journal ends as
// before.
func (j *Journal) write(e Entry, durable bool) (uint64, error) {
	if j.closed {
		return 0, errors.New("the journal is closed: the site is ending")
	}
	if j.file == nil {
		if err := j.resume(); err != nil {
			return 0, err
		}
	}
	if j.size > segmentSize {
		if err := errors.Join(j.file.Sync(), j.begin()); err != nil {
			return 0, err
		}
	}
	if set, ok := j.clock.check(j.now()); ok {
		if _, err := j.write(set, false); err != nil {
			j.clock.retry()
			return 0, err
		}
	}
	if e.Seq = j.seq + 1; e.At == 0 {
		now, _ := j.now()
		e.At = now.UnixMilli()
	}
	b, after, err := appendFrame(j.buf[:0], e, j.before)
	if err != nil {
		return 0, err
	}
	j.buf = b
	n, err := j.file.Write(b)
	if err == nil && durable {
		err = j.file.Sync()
	}
	if err != nil && n == 0 { // as on a disk that has become read-only
		return 0, err
	}
	if err != nil {
		if errors.Join(j.file.Truncate(j.size), seekEnd(j.file)) != nil { // resume does it
			j.at = end{file: j.file.Name(), size: j.size}
			j.file.Close()
			j.file = nil
		}
		return 0, err
	}
	j.size += int64(len(b))
	j.seq, j.before = e.Seq, after
	j.entries.Store(j.seq)
	if j.seq-j.anchored >= anchorEvery {
		j.anchor()
	}
	return e.Seq, nil
}

// anchor notes how far the journal goes. It is best effort: the chain holds without.
func (j *Journal) anchor() error {
	if j.anchored == j.seq {
		j.due = false
		return nil
	}
	if err := j.file.Sync(); err != nil { // an anchor never runs ahead of the disk
		return err
	}
	if err := state.WriteAtomic(filepath.Join(j.folder, anchorFile), anchor{j.seq, j.before}.bytes(), 0o600); err != nil {
		return err
	}
	j.anchored, j.due = j.seq, false
	return nil
}

// Note writes an event, without a sync.
func (j *Journal) Note(says string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.write(Entry{Kind: Event, Says: device.Clip(says, maxSays)}, false)
	return err
}

// Add records a finished call and its outcome without waiting for the disk. Run writes it at once,
// without a sync, and retries a failed write in a minute. Repetitions within repeatEvery, with no
// Begin about the same output between, are counted and written as one entry. No rate limits
// renewals and releases: they must not wear out the card or push other calls out of the journal.
// Add never blocks for the disk; the call's key is not remembered.
func (j *Journal) Add(c Call, o Outcome) {
	e, r := intent(c), result(o)
	now, _ := j.now()
	e.Kind, e.At = Done, now.UnixMilli()
	e.Fault, e.Says, e.Value = r.Fault, r.Says, r.Value
	of := repeat{subject(c), c.Who, c.Tool, o.Fault}
	j.quick.Lock()
	defer j.quick.Unlock()
	before, again := j.repeats[of]
	switch {
	case again:
		e.Count = 1
		if before != nil {
			e.Count += before.Count
		}
		j.repeats[of] = &e
	case len(j.waiting) >= maxWaiting:
		j.lost++
		return
	default:
		if of.about != "" && len(j.repeats) < maxRepeats {
			j.repeats[of] = nil
		}
		j.waiting = append(j.waiting, e)
		wake(j.soon)
	}
	j.recent.add(c, o, time.Now(), 1)
	wake(j.later)
}

// repeat is the key by which a call is recognised as a repetition.
type repeat struct{ about, who, tool, fault string }

// writeRepeats writes the repetitions that were counted, of calls about one output, or of all
// for "". Which have none since the last time begin anew, and with one output all of it.
func (j *Journal) writeRepeats(about string) error {
	var due []Entry
	j.quick.Lock()
	for of, e := range j.repeats {
		switch {
		case about != "" && of.about != about:
			continue
		case e != nil:
			due = append(due, *e)
		}
		if e == nil || about != "" {
			delete(j.repeats, of)
		} else {
			j.repeats[of] = nil
		}
	}
	left := len(j.repeats) > 0
	j.quick.Unlock()
	if left {
		wake(j.later)
	}
	slices.SortFunc(due, func(a, b Entry) int { return cmp.Compare(a.At, b.At) })
	for i, e := range due {
		if _, err := j.write(e, false); err != nil {
			j.quick.Lock()
			defer j.quick.Unlock()
			j.lost += len(due) - i
			return err
		}
	}
	return nil
}

// Deny counts a call that was refused. Denials are written together once a minute and never
// synced, so that strangers cannot wear out the card. It does not wait for the disk.
func (j *Journal) Deny(who, tool, fault string) {
	j.quick.Lock()
	defer j.quick.Unlock()
	if j.denied.add(denial{who, tool, fault}) {
		wake(j.work)
	}
}

// Run writes the entries of Add and Deny, until ctx ends; then it writes the rest and closes the
// journal.
func (j *Journal) Run(ctx context.Context) error {
	var minute, repeated <-chan time.Time // nil while nothing is collected
	for {
		select {
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			err := errors.Join(j.writeWaiting(), j.writeRepeats(""), j.writeDenials(), j.anchor())
			if j.file != nil {
				err = errors.Join(err, j.file.Sync(), j.file.Close())
			}
			j.closed = true
			return err
		case <-j.soon:
			j.mu.Lock()
			if j.writeWaiting() != nil { // retried within a minute
				wake(j.work)
			}
			j.mu.Unlock()
		case <-j.work:
			if minute == nil {
				minute = time.After(flushEvery)
			}
		case <-minute:
			minute = nil
			j.mu.Lock()
			err := errors.Join(j.writeWaiting(), j.writeDenials())
			if j.due { // and not for refused or repeated calls
				err = errors.Join(err, j.anchor())
			}
			if err != nil {
				wake(j.work) // again in a minute
			}
			j.mu.Unlock()
		case <-j.later:
			if repeated == nil {
				repeated = time.After(repeatEvery)
			}
		case <-repeated:
			repeated = nil
			j.mu.Lock()
			if j.writeRepeats("") != nil {
				wake(j.work) // says how many are lost
			}
			j.mu.Unlock()
		}
	}
}

// writeWaiting writes the entries of Add.
func (j *Journal) writeWaiting() error {
	j.quick.Lock()
	waiting, lost := j.waiting, j.lost
	j.waiting, j.lost = nil, 0
	j.quick.Unlock()
	for len(waiting) > 0 {
		if _, err := j.write(waiting[0], false); err != nil {
			j.quick.Lock()
			j.waiting, j.lost = append(waiting, j.waiting...), j.lost+lost
			j.quick.Unlock()
			return err
		}
		waiting, j.due = waiting[1:], true
		wake(j.work) // an anchor follows
	}
	if lost > 0 {
		_, err := j.write(Entry{Kind: Event, Says: fmt.Sprintf("%d calls that did not wait for the disk could not be written", lost)}, false)
		return err
	}
	return nil
}

// writeDenials writes the denials.
func (j *Journal) writeDenials() error {
	j.quick.Lock()
	denied := j.denied
	j.denied = denials{}
	j.quick.Unlock()
	for d, count := range denied {
		if _, err := j.write(Entry{Kind: Denied, Who: d.who, Tool: d.tool, Fault: d.fault, Count: count}, false); err != nil {
			j.quick.Lock()
			defer j.quick.Unlock()
			for d, count := range denied {
				j.denied.count(d, count)
			}
			return err
		}
		delete(denied, d)
	}
	return nil
}

// denial is a kind of refused call, counted together.
type denial struct{ who, tool, fault string }

type denials map[denial]int

// maxDenials limits the different denials of a minute.
const maxDenials = 64

// add counts a denial, and reports whether it is the first since the last write.
func (d denials) add(one denial) (first bool) {
	first = len(d) == 0
	d.count(one, 1)
	return first
}

func (d denials) count(one denial, n int) {
	if _, known := d[one]; !known && len(d) >= maxDenials {
		one = denial{who: "others"}
	}
	d[one] += n
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
