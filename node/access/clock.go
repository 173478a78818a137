package access

import "time"

const (
	// maxAhead limits how far the network moves the time beyond an owner's time and the saved one. It
	// is about as long as permissions to act last. So a site that was off for longer loses few of
	// them by waiting for an owner.
	maxAhead = 7 * 24 * time.Hour
	// maxBehind limits how far the network may be behind that; an owner's clock may be in
	// another time zone by mistake.
	maxBehind = 24 * time.Hour
)

// clock is the trusted time of day. It is the latest of the program's build time, the last save, an
// owner's time, and the system's clock while it is synchronised and within bounds. In between it
// advances by the monotonic clock.
//
// After a start the time is a lower bound, because the site may have been off for any time. An
// owner or the system's clock sets it. A system's clock beyond the bounds is ignored and leaves the
// clock unsure: a false time from the far future would end every permission permanently.
type clock struct {
	// The times are those of when the process began.
	least      time.Time     // a lower bound
	anchor     time.Time     // the saved or the owner's time, from which bounds count; zero for neither
	sure       bool          // least is exact
	skew       time.Duration // how far beyond the bounds the system's clock is ahead of least; 0 within
	overridden bool          // an owner set the time nevertheless
	known      bool          // least was exact since the process began
	doubted    bool          // the system's clock was beyond the bounds
	recorded   time.Time     // of the newest record of earlier runs
}

// newClock returns the clock at the start of the process, from the build's time and the saved time.
// known says whether the time was known when it was saved; otherwise the first synchronised time is
// believed.
func newClock(build, saved time.Time, known bool) clock {
	c := clock{least: build}
	c.raise(0, saved)
	if known {
		c.anchor = c.least
	}
	return c
}

// offer takes the time of an owner's machine, which came with another command: within the bounds of
// the network's. It reports whether that was believed. now is the process's uptime.
func (c *clock) offer(now time.Duration, t time.Time) bool {
	if c.beyond(t.Add(-now).Round(0)) {
		return false
	}
	c.raise(now, t)
	if c.anchor.IsZero() {
		c.anchor = c.least
	}
	c.sure, c.known, c.overridden = true, true, c.skew != 0
	return true
}

// beyond reports whether a time of when the process began is too far from the last known one.
func (c *clock) beyond(began time.Time) bool {
	return !c.anchor.IsZero() && began.Sub(c.anchor) > maxAhead || c.least.Sub(began) > maxBehind
}

// advance takes the time from an owner, by its word, and never moves back.
func (c *clock) advance(now time.Duration, t time.Time) {
	c.raise(now, t)
	c.anchor, c.sure, c.known, c.overridden = c.least, true, true, c.skew != 0
}

// set is advance that also moves back.
func (c *clock) set(now time.Duration, t time.Time) {
	c.least = time.Time{}
	c.advance(now, t)
}

// read returns the time, and whether it is exact rather than a lower bound. system is the
// system's clock, which counts while it is synchronised and within bounds.
func (c *clock) read(now time.Duration, system time.Time, synchronised bool) (t time.Time, sure bool) {
	c.skew = 0
	if synchronised {
		began := system.Add(-now).Round(0)
		if c.beyond(began) {
			c.skew = began.Sub(c.least)
			c.sure = c.sure && c.overridden
			c.doubted = true
			return c.least.Add(now), c.sure
		}
		c.raise(now, system)
		if c.anchor.IsZero() {
			c.anchor = c.least
		}
		c.sure, c.known, c.overridden = true, true, false
	}
	return c.least.Add(now), c.sure
}

// guess is read for everything but permissions. While the time was never known, it is not before the
// records of earlier runs, nor before the system's clock, unless that was out of bounds.
func (c *clock) guess(now time.Duration, system time.Time, synchronised bool) (t time.Time, sure bool) {
	t, sure = c.read(now, system, synchronised)
	if c.known {
		return t, sure
	}
	if r := c.recorded.Add(now); r.After(t) {
		t = r
	}
	if system = system.Round(0); system.After(t) && !synchronised && !c.doubted {
		t = system
	}
	return t, false
}

// raise moves the lower bound up to t.
func (c *clock) raise(now time.Duration, t time.Time) {
	if began := t.Add(-now).Round(0); began.After(c.least) { // without the monotonic clock, which t may carry
		c.least = began
	}
}
