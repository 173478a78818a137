package access

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// saveEvery is how often the time and what was counted are kept besides.
const saveEvery = time.Hour

// saveSoon is how soon they are after the end of a grant that is only in memory.
const saveSoon = time.Minute

// ran is how long the process has run.
func (b *Store) ran() time.Duration { return time.Since(b.start) }

func (b *Store) now() (t time.Time, sure bool) {
	system, synchronised := b.SystemClock()
	before := b.clock.least
	t, sure = b.clock.Read(b.ran(), system, synchronised)
	if b.clock.least.Sub(before) > time.Second {
		b.poke()
	}
	return t, sure
}

// Now is the time of day, and whether it is that and not only not earlier.
func (b *Store) Now() (t time.Time, sure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

// ClockSkew is how far the system's clock is ahead of Now although something
// synchronised it, where that is too far to be believed without an owner's word; 0
// otherwise.
func (b *Store) ClockSkew() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now()
	return b.clock.off
}

// AdvanceClock is an owner who proved who it is, and says what the time is now. It moves the time
// forward only. What was known well enough already is not kept once more.
func (b *Store) AdvanceClock(t time.Time) error {
	b.mu.Lock()
	before, sure := b.now()
	b.clock.Tell(b.ran(), t)
	b.poke()
	b.mu.Unlock()
	if sure && t.Sub(before) < time.Minute {
		return nil
	}
	return b.Save()
}

// SetClock is Tell for an owner at the site itself, who may also set the time back, but
// not to before the program was built. Permissions that ended between count again.
func (b *Store) SetClock(t time.Time) error {
	if t.Before(b.Build) {
		return fmt.Errorf("this program was made at %s, so that it cannot be %s: set this machine's clock first", when(b.Build.Unix()), when(t.Unix()))
	}
	b.mu.Lock()
	b.clock.Set(b.ran(), t)
	b.poke()
	b.mu.Unlock()
	return b.Save()
}

// Save keeps the time and what was counted: what a site has run since is not credited
// after a start.
func (b *Store) Save() error {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	least, _ := b.now()
	text, err := b.meter.encode(b.ran(), least, !b.clock.anchor.IsZero())
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.SaveCounts(text)
}

// poke wakes Keep.
func (b *Store) poke() {
	select {
	case b.moved <- struct{}{}:
	default:
	}
}

// Run ends what is held by leave of a permission once that ends by itself, and saves
// then, so that no later start takes the time to be before that end; and once an hour,
// and at the end of ctx, for which it waits. After the end of grants that are in memory it
// saves within a minute: their holders make as many as they like.
func (b *Store) Run(ctx context.Context) {
	from, _ := b.Now()
	saved, every := time.Now(), saveEvery
	for ending := false; !ending; {
		wait := every - time.Since(saved)
		if next := b.nextEnd(from); !next.IsZero() {
			wait = min(wait, next.Sub(from))
		}
		timer := time.NewTimer(wait)
		select {
		case <-b.moved:
		case <-timer.C:
		case <-ctx.Done():
			ending = true
		}
		timer.Stop()
		now, _ := b.Now()
		ended, kept := b.haveEnded(from, now)
		if ended {
			b.OnEnd()
			every = saveSoon
		}
		if from = now; !kept && !ending && time.Since(saved) < every {
			continue
		}
		if err := b.Save(); err != nil {
			slog.Error("the time and what was counted cannot be kept", "err", err)
		}
		saved, every = time.Now(), saveEvery
	}
}

// haveEnded reports whether a permission has ended between two times, and whether one that is
// kept has.
func (b *Store) haveEnded(from, now time.Time) (any, kept bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	any, b.dropped = b.dropped, false
	for _, all := range b.held {
		for _, h := range all {
			if until := h.ends(); until > from.Unix() && until <= now.Unix() {
				any, kept = true, kept || !h.presented
			}
		}
	}
	return any, kept
}

// nextEnd is when the first permission ends after a time; the zero Time for none.
func (b *Store) nextEnd(from time.Time) (next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.held {
		for _, h := range all {
			if until := h.ends(); until != 0 && until > from.Unix() && (next.IsZero() || until < next.Unix()) {
				next = time.Unix(until, 0)
			}
		}
	}
	return next
}

// ends is when a grant ends, with the token that it is held by; 0 for never.
func (h credential) ends() int64 {
	until := h.until
	if t := h.grant.Until(); !t.IsZero() && (until == 0 || t.Unix() < until) {
		until = t.Unix()
	}
	return until
}
