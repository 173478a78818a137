package access

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	saveInterval = time.Hour   // between saves of the time and the counts
	saveDelay    = time.Minute // after a grant that is only in memory has expired
)

// uptime returns how long the process has run.
func (s *Store) uptime() time.Duration { return time.Since(s.start) }

func (s *Store) now() (t time.Time, sure bool) {
	system, synchronised := s.SystemClock()
	before := s.clock.least
	t, sure = s.clock.read(s.uptime(), system, synchronised)
	if s.clock.least.Sub(before) > time.Second {
		s.wake()
	}
	return t, sure
}

// Now returns the time of day: the one clock of the site, by which it stores, asks and compares.
// Where sure is false, it is a guess that may be wrong; permissions count by a lower bound then.
func (s *Store) Now() (t time.Time, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now()
	system, synchronised := s.SystemClock()
	return s.clock.guess(s.uptime(), system, synchronised)
}

// bound returns the time of day, or a lower bound while it is not known.
func (s *Store) bound() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.now()
	return t
}

// Recorded tells the time of the newest record of earlier runs, before which Now is not while it
// is not known.
func (s *Store) Recorded(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.recorded = t.Add(-s.uptime()).Round(0)
}

// ClockSkew returns how far the synchronised system's clock is ahead of Now, if an owner has to
// confirm it; 0 otherwise.
func (s *Store) ClockSkew() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now()
	return s.clock.skew
}

// AdvanceClock takes the time that an authenticated owner's machine shows, beside another command.
// The time moves forward by maxAhead at most, as by the network. A clock beyond that changes nothing.
// It saves, except where the time was known and moves by less than a minute.
func (s *Store) AdvanceClock(t time.Time) error {
	s.mu.Lock()
	before, sure := s.now()
	believed := s.clock.offer(s.uptime(), t)
	s.wake()
	s.mu.Unlock()
	if !believed || sure && t.Sub(before) < time.Minute {
		return nil
	}
	return s.Save()
}

// SetClock sets the time by an owner's word, forward to any time. With back, which is for an owner
// at the site itself, it also moves back, down to when the program was built. Permissions that
// expired in between are valid again.
func (s *Store) SetClock(t time.Time, back bool) error {
	if t.Before(s.Build) {
		return fmt.Errorf("the time %[2]s is before this program's build at %[1]s: set this machine's clock first", formatTime(s.Build.Unix()), formatTime(t.Unix()))
	}
	s.mu.Lock()
	s.now()
	if back {
		s.clock.set(s.uptime(), t)
	} else {
		s.clock.advance(s.uptime(), t)
	}
	s.wake()
	s.mu.Unlock()
	return s.Save()
}

// Save writes the time, the counts and the marks. Uptime after the last save is not credited at the next
// start.
func (s *Store) Save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	least, _ := s.now()
	text, err := s.counter.encode(s.uptime(), s.marks, least, !s.clock.anchor.IsZero())
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.SaveCounts(text)
}

// wake makes Run look again at when the next permission expires.
func (s *Store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run calls OnEnd when permissions expire, and blocks until ctx ends. It saves the time after an
// expiry, so that no later start has an earlier time, once an hour, and when ctx ends. After the
// expiry of grants that are only in memory it saves within a minute, because their holders can make
// any number of them.
func (s *Store) Run(ctx context.Context) {
	from := s.bound()
	s.logEnding(time.Time{}, from)
	saved, interval := time.Now(), saveInterval
	for ending := false; !ending; {
		wait := interval - time.Since(saved)
		if next := s.nextExpiry(from); !next.IsZero() {
			wait = min(wait, next.Sub(from))
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.changed:
		case <-timer.C:
		case <-ctx.Done():
			ending = true
		}
		timer.Stop()
		now := s.bound()
		s.logEnding(from, now)
		expired, stored := s.expiredBetween(from, now)
		if expired {
			s.OnEnd()
			interval = saveDelay
		}
		if from = now; !stored && !ending && time.Since(saved) < interval {
			continue
		}
		if err := s.Save(); err != nil {
			slog.Error("time and counts not saved", "err", err)
		}
		if err := s.storeRevoked(); err != nil {
			slog.Error("revocation not stored: a restart would undo it", "err", err)
		}
		saved, interval = time.Now(), saveInterval
	}
}

// endNotices lists the times before the end of a permission at which it is logged: a week and a day, less some
// hours, so that one of the usual length is not logged when it is made. Run looks once an hour.
var endNotices = []time.Duration{7*24*time.Hour - 2*time.Hour, 24*time.Hour - 12*time.Hour}

// logEnding logs the stored permissions that came near their ends between two times, and tells OnEnding.
func (s *Store) logEnding(from, now time.Time) {
	type ending struct {
		who   string
		grant Hash
		until time.Time
	}
	var near []ending
	s.mu.Lock()
	for who, all := range s.credentials {
		for _, c := range all {
			until := time.Unix(c.expires(), 0)
			if c.presented || !until.After(now) {
				continue
			}
			if slices.ContainsFunc(endNotices, func(n time.Duration) bool {
				return until.Add(-n).After(from) && !until.Add(-n).After(now)
			}) {
				slog.Warn("permission ends soon", "who", who, "until", until.UTC().Format(time.RFC3339), "grant", c.grant.ID())
				near = append(near, ending{who, c.grant.ID(), until})
			}
		}
	}
	s.mu.Unlock()
	for _, e := range near {
		s.OnEnding(e.who, e.grant, e.until)
	}
}

// expiredBetween reports whether a permission has expired between two times, and whether a
// stored one has.
func (s *Store) expiredBetween(from, now time.Time) (any, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	any, s.dropped = s.dropped, false
	for _, all := range s.credentials {
		for _, c := range all {
			if until := c.expires(); until > from.Unix() && until <= now.Unix() {
				any, stored = true, stored || !c.presented
			}
		}
	}
	return any, stored
}

// nextExpiry returns when the first permission expires after a time; the zero Time for none.
func (s *Store) nextExpiry(from time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.credentials {
		for _, c := range all {
			if until := c.expires(); until != 0 && until > from.Unix() && (next.IsZero() || until < next.Unix()) {
				next = time.Unix(until, 0)
			}
		}
	}
	return next
}
