package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"
)

const (
	// MaxSites is how many sites a directory holds besides those that are pinned.
	MaxSites = 256

	maxSeenAt = 8 // addresses of a site as media see it

	minRetryPause = time.Second // before a medium that failed is tried again
	maxRetryPause = time.Minute
)

// verifyRate bounds the signatures that are verified: each takes milliseconds on the smallest
// board.
var verifyRate = quota.Rate{PerSecond: 8, Burst: MaxSites}

// Errors of a record that is valid in itself.
var (
	ErrReplayed = errors.New("a newer record of its site is known, or another of the same sequence")
	ErrExpired  = errors.New("it holds no longer")
	ErrFull     = errors.New("there are more sites here than fit, or more records than can be verified")
)

// Older is why a record is not taken: a newer one of its site is known, which can be shown
// to the site, so that its next is newer still. It is ErrReplayed.
type OlderError struct{ Newest *Signed }

func (*OlderError) Error() string { return ErrReplayed.Error() }

// Is reports whether it is that error.
func (*OlderError) Is(err error) bool { return err == ErrReplayed }

// Ignored counts what was not taken, by reason.
type Ignored struct {
	Oversized, Malformed, Forged, Replayed, Expired, Full uint64
}

// Directory holds the records of the sites that are there. It is made of media, and is
// one. Bounded: MaxSites, and those that are pinned, whose places no others take; who
// is held stays while others are refused. All time is that of the monotonic clock, and
// goes on while the machine sleeps.
//
// A record holds for its lifetime from when this directory first heard it, however
// often it is repeated, and while a medium vouches for it. What is played back can
// therefore say where a site was, for as long; whoever connects sees if it is there.
type Directory struct {
	log       *slog.Logger
	media     map[string]Medium
	suspended func() time.Duration

	mu       sync.Mutex
	sites    map[identity.ID]*entry
	pinned   map[identity.ID]bool
	watchers map[chan struct{}]struct{}
	ignored  Ignored

	verifyOthers, verifyPinned quota.Bucket
}

// entry is a site that was heard of. It stays after the site has gone, until its place
// is needed, so that no older record is taken.
type entry struct {
	record   *Signed
	since    time.Time            // when this record was first heard
	sources  map[string]time.Time // media, and until when each vouches
	at       []netip.Addr
	revision uint64 // counts what a watcher is told
}

// NewDirectory makes a directory of media, each with its name. It does nothing before Run.
func NewDirectory(log *slog.Logger, media map[string]Medium) *Directory {
	return &Directory{
		log: log, media: media, suspended: Suspended,
		sites: make(map[identity.ID]*entry), watchers: make(map[chan struct{}]struct{}),
	}
}

// Run finds sites on all media until ctx ends. A medium that fails is tried again.
func (d *Directory) Run(ctx context.Context) {
	d.runMedia(ctx, func(name string, m Medium) error {
		return m.Find(ctx, func(s Sighting) error { return d.handleSighting(name, s) })
	})
}

// Announce shows a record on all media until ctx ends. A medium that fails is tried
// again.
func (d *Directory) Announce(ctx context.Context, record *Signed) error {
	d.runMedia(ctx, func(_ string, m Medium) error { return m.Announce(ctx, record) })
	return nil
}

func (d *Directory) runMedia(ctx context.Context, do func(name string, m Medium) error) {
	var wait sync.WaitGroup
	for name, m := range d.media {
		wait.Go(func() {
			pause := minRetryPause
			for ctx.Err() == nil {
				start := time.Now()
				err := do(name, m)
				if ctx.Err() != nil {
					return
				}
				if time.Since(start) > maxRetryPause { // it worked
					pause = minRetryPause
				}
				d.log.Warn("a way to find sites failed, and is tried again", "medium", name, "after", pause, "error", err)
				Sleep(ctx, pause)
				pause = min(2*pause, maxRetryPause)
			}
		})
	}
	wait.Wait()
}

// Sleep returns after a pause, or when ctx ends.
func Sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// now is the time by which the directory counts.
func (d *Directory) now() time.Time { return time.Now().Add(d.suspended()) }

// Pin keeps a place for each of these, whether they are there or not, and for no
// others: sites that the user knows.
func (d *Directory) Pin(sites ...identity.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned = make(map[identity.ID]bool, len(sites))
	for _, id := range sites {
		d.pinned[id] = true
	}
}

// Lost says that a site was not found at any of its addresses. It is gone until a
// medium shows it again, which takes a minute or two if it is there after all.
func (d *Directory) MarkGone(site identity.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sites[site]; e != nil {
		clear(e.sources)
		d.notifyWatchers()
	}
}

// Ignored returns what was not taken so far.
func (d *Directory) Ignored() Ignored {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ignored
}

// see takes a sighting in, or says why not.
func (d *Directory) handleSighting(medium string, s Sighting) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Record == nil {
		if e := d.sites[s.Site]; e != nil {
			delete(e.sources, medium)
			d.notifyWatchers()
		}
		return nil
	}
	now := d.now()
	before := d.revision(s.Site, now)
	e, err := d.accept(s, now)
	if err != nil {
		d.ignored.count(err)
		return err
	}
	e.sources[medium] = now.Add(min(s.For, e.record.Lifetime))
	e.addAddrs(s.At)
	if e.revision != before {
		d.notifyWatchers()
	}
	return nil
}

// revision is what watchers know of a site, 0 of one that is not there.
func (d *Directory) revision(site identity.ID, now time.Time) uint64 {
	if e := d.sites[site]; e != nil && e.expires().After(now) {
		return e.revision
	}
	return 0
}

// take returns the entry that has the sighting's record now.
func (d *Directory) accept(s Sighting, now time.Time) (*entry, error) {
	r, err := read(s.Record)
	if err != nil {
		return nil, err
	}
	if r.Site != s.Site {
		return nil, fmt.Errorf("%w: it was shown as that of %v", ErrForged, s.Site)
	}
	e := d.sites[r.Site]
	if e != nil && bytes.Equal(e.record.body, r.body) {
		if now.Sub(e.since) >= r.Lifetime {
			return nil, ErrExpired
		}
		if e.record.offer == nil && r.offer != nil { // whose digest was signed
			r.signature = e.record.signature
			e.record = r
			e.revision++
		}
		return e, nil
	}
	if e != nil && r.Sequence < e.record.Sequence {
		return nil, &OlderError{e.record}
	}
	if e != nil && r.Sequence == e.record.Sequence {
		return nil, ErrReplayed
	}
	if e == nil && !d.makeRoom(r.Site, now) || !d.verifyBucket(r.Site).Take(now, verifyRate, 1) {
		return nil, ErrFull
	}
	if err := r.verify(); err != nil {
		return nil, err
	}
	if e == nil {
		e = &entry{sources: make(map[string]time.Time)}
		d.sites[r.Site] = e
	}
	e.record, e.since = r, now
	e.revision++
	return e, nil
}

// room reports whether there is a place for a new site. One that has gone gives up its.
func (d *Directory) makeRoom(site identity.ID, now time.Time) bool {
	if d.pinned[site] {
		return true
	}
	strangers := 0
	var gone identity.ID
	for id, e := range d.sites {
		if !d.pinned[id] {
			strangers++
			if !e.expires().After(now) {
				gone = id
			}
		}
	}
	if strangers < MaxSites {
		return true
	}
	_, some := d.sites[gone]
	delete(d.sites, gone)
	return some
}

// verifyBucket returns the bucket that limits verifying a site's records: others do not use up
// that of the pinned sites.
func (d *Directory) verifyBucket(site identity.ID) *quota.Bucket {
	if d.pinned[site] {
		return &d.verifyPinned
	}
	return &d.verifyOthers
}

// until is when the site is gone if nothing is heard of it.
func (e *entry) expires() (until time.Time) {
	for _, t := range e.sources {
		if t.After(until) {
			until = t
		}
	}
	if holds := e.since.Add(e.record.Lifetime); until.After(holds) {
		return holds
	}
	return until
}

// meet puts addresses before those that are known.
func (e *entry) addAddrs(at []netip.Addr) {
	var all []netip.Addr
	for _, a := range slices.Concat(at, e.at) {
		if a.IsValid() && !slices.Contains(all, a) && len(all) < maxSeenAt {
			all = append(all, a)
		}
	}
	if slices.ContainsFunc(all, func(a netip.Addr) bool { return !slices.Contains(e.at, a) }) {
		e.revision++
	}
	e.at = all
}

func (i *Ignored) count(err error) {
	for reason, n := range map[error]*uint64{
		ErrOversized: &i.Oversized, ErrMalformed: &i.Malformed, ErrForged: &i.Forged,
		ErrReplayed: &i.Replayed, ErrExpired: &i.Expired, ErrFull: &i.Full,
	} {
		if errors.Is(err, reason) {
			*n++
		}
	}
}
