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

	maxSeenAt = 8 // addresses of a site as seen by media

	minRetryPause = time.Second // after a medium failed
	maxRetryPause = time.Minute
)

// verifyRate bounds the signatures that are verified: each takes milliseconds on the smallest
// board.
var verifyRate = quota.Rate{PerSecond: 8, Burst: MaxSites}

// Errors of a record that is valid in itself.
var (
	ErrReplayed = errors.New("a newer record of the site is known, or another one with the same sequence")
	ErrExpired  = errors.New("the record has expired")
	ErrFull     = errors.New("the directory is full, or too many records have to be verified")
)

// OlderError is an ErrReplayed with the newest known record. The caller can send it to the site, so
// that the site's next record is newer still.
type OlderError struct{ Newest *Signed }

func (*OlderError) Error() string { return ErrReplayed.Error() }

// Is makes it an ErrReplayed.
func (*OlderError) Is(err error) bool { return err == ErrReplayed }

// Ignored counts refused records by reason.
type Ignored struct {
	Oversized, Malformed, Forged, Replayed, Expired, Full uint64
}

// Directory holds the valid records of sites. It combines media and is a Medium itself. It
// holds MaxSites and the pinned ones, whose slots no others take; when full, it refuses new
// sites. It uses the monotonic clock plus the time in which the machine was suspended.
// A record is valid for its lifetime since this directory first received it, however often it
// is repeated, and while a medium reports the site. So a replayed record can name an old address
// for that long; a connection shows whether the site is there.
type Directory struct {
	log       *slog.Logger
	media     map[string]Medium
	suspended func() time.Duration

	mu       sync.Mutex
	sites    map[identity.ID]*entry
	pinned   map[identity.ID]bool
	watchers Notifier
	ignored  Ignored

	verifyOthers, verifyPinned quota.Bucket
}

// entry is a known site. It remains after the site has gone, until its slot is needed, so
// that no older record is accepted.
type entry struct {
	record   *Signed
	since    time.Time            // when this record was first received
	sources  map[string]time.Time // by medium, until when each reports the site
	seen     []seen               // the addresses, of the medium that changed them last first
	revision uint64               // counts changes for watchers
}

// seen are the addresses at which a medium sees a site.
type seen struct {
	medium string
	at     []netip.Addr
}

// NewDirectory returns a directory of named media. It is idle until Run.
func NewDirectory(log *slog.Logger, media map[string]Medium) *Directory {
	return &Directory{
		log: log, media: media, suspended: Suspended,
		sites: make(map[identity.ID]*entry),
	}
}

// Run finds sites on all media until ctx ends. It restarts a medium that fails.
func (d *Directory) Run(ctx context.Context) {
	d.runMedia(ctx, func(name string, m Medium) error {
		return m.Find(ctx, func(s Sighting) error { return d.handleSighting(name, s) })
	})
}

// Announce announces a record on all media until ctx ends. It restarts a medium that fails.
func (d *Directory) Announce(ctx context.Context, record *Signed) error {
	d.runMedia(ctx, func(_ string, m Medium) error { return m.Announce(ctx, record) })
	return nil
}

// runMedia runs do for each medium until ctx ends, with back-off.
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
				d.log.Warn("medium failed", "medium", name, "retry", pause, "err", err)
				Sleep(ctx, pause)
				pause = min(2*pause, maxRetryPause)
			}
		})
	}
	wait.Wait()
}

// Sleep blocks for a duration, or until ctx ends.
func Sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// now returns the directory's time.
func (d *Directory) now() time.Time { return time.Now().Add(d.suspended()) }

// Pin reserves slots for these sites, known to the user, and for no others.
func (d *Directory) Pin(sites ...identity.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned = make(map[identity.ID]bool, len(sites))
	for _, id := range sites {
		d.pinned[id] = true
	}
}

// Ignored returns the counts of refused records.
func (d *Directory) Ignored() Ignored {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ignored
}

// handleSighting stores a sighting, or returns why not.
func (d *Directory) handleSighting(medium string, s Sighting) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Record == nil {
		if e := d.sites[s.Site]; e != nil {
			delete(e.sources, medium)
			d.watchers.Notify()
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
	e.setAddrs(medium, s.At)
	if e.revision != before {
		d.watchers.Notify()
	}
	return nil
}

// revision returns the revision that watchers see, 0 for a site that is gone.
func (d *Directory) revision(site identity.ID, now time.Time) uint64 {
	if e := d.sites[site]; e != nil && e.expires().After(now) {
		return e.revision
	}
	return 0
}

// accept returns the entry of a sighting's record after storing it.
func (d *Directory) accept(s Sighting, now time.Time) (*entry, error) {
	r, err := read(s.Record)
	if err != nil {
		return nil, err
	}
	if r.Site != s.Site {
		return nil, fmt.Errorf("%w, it came as that of %v", ErrForged, s.Site)
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

// makeRoom reports whether there is a slot for a new site. If need be, it removes a site that has
// gone.
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

// expires returns when the site is gone unless it is reported again.
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

// setAddrs stores the addresses that a medium reports, in place of its earlier ones. No addresses are
// no report.
func (e *entry) setAddrs(medium string, at []netip.Addr) {
	at = slices.DeleteFunc(slices.Clone(at), func(a netip.Addr) bool { return !a.IsValid() })
	at = at[:min(len(at), maxSeenAt)]
	i := slices.IndexFunc(e.seen, func(s seen) bool { return s.medium == medium })
	if len(at) == 0 || i >= 0 && slices.Equal(e.seen[i].at, at) {
		return
	}
	before := e.addrs()
	if i >= 0 {
		e.seen = slices.Delete(e.seen, i, i+1)
	}
	e.seen = slices.Insert(e.seen, 0, seen{medium, at})
	if !slices.Equal(e.addrs(), before) {
		e.revision++
	}
}

// addrs returns the addresses that all media report, each once.
func (e *entry) addrs() (all []netip.Addr) {
	for _, s := range e.seen {
		for _, a := range s.at {
			if len(all) < maxSeenAt && !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
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
