package access

import "time"

const (
	// maxAhead is how far the network moves the time forward beyond what owners told and
	// what was saved. Permissions to act last as long, mostly, so that a site which was off
	// for longer loses few of them by waiting for an owner's word.
	maxAhead = 7 * 24 * time.Hour
	// maxBehind is how far the network may be behind that; an owner's clock may be in
	// another time zone by mistake.
	maxBehind = 24 * time.Hour
)

// clock is the time of day as far as it can be trusted: the latest of when the
// program was built, what was known when it was last saved, what an owner told, and
// the system's clock once something synchronised that and it is within bounds. Between
// those it goes on by the monotonic clock. The zero clock knows nothing.
//
// Until an owner or the system has told it, a start leaves it with a time before
// which it is not, since nobody knows how long the site was off. A system's clock beyond
// the bounds tells it nothing, and leaves it unsure: whoever synchronised that may lie,
// and a lie from the far future would end every permission for good.
type clock struct {
	// The times are those of when the process began.
	least     time.Time     // the time is at least that
	anchor    time.Time     // what was saved or told, from which bounds count; zero for neither
	sure      bool          // it is exactly least
	off       time.Duration // how far beyond the bounds the system's clock is ahead of least; 0 within
	overruled bool          // an owner told the time nevertheless
}

// newClock begins with the process: the build's time, and what was saved. known says
// whether the time was known when it was; otherwise the network is believed in whatever
// it says first.
func newClock(build, saved time.Time, known bool) clock {
	c := clock{least: build}
	c.learn(0, saved)
	if known {
		c.anchor = c.least
	}
	return c
}

// Tell is the time from an owner. now is how long the process has run. It never goes
// back.
func (c *clock) Tell(now time.Duration, t time.Time) {
	c.learn(now, t)
	c.anchor, c.sure, c.overruled = c.least, true, c.off != 0
}

// Set is Tell that also goes back.
func (c *clock) Set(now time.Duration, t time.Time) {
	c.least = time.Time{}
	c.Tell(now, t)
}

// Read returns the time, and whether it is that and not only not earlier. system is
// the system's clock, which counts while it is synchronised and within bounds.
func (c *clock) Read(now time.Duration, system time.Time, synchronised bool) (t time.Time, sure bool) {
	c.off = 0
	if synchronised {
		began := system.Add(-now).Round(0)
		if !c.anchor.IsZero() && began.Sub(c.anchor) > maxAhead || c.least.Sub(began) > maxBehind {
			c.off = began.Sub(c.least)
			c.sure = c.sure && c.overruled
			return c.least.Add(now), c.sure
		}
		c.learn(now, system)
		if c.anchor.IsZero() {
			c.anchor = c.least
		}
		c.sure, c.overruled = true, false
	}
	return c.least.Add(now), c.sure
}

// learn never goes back.
func (c *clock) learn(now time.Duration, t time.Time) {
	if began := t.Add(-now).Round(0); began.After(c.least) { // without the monotonic clock, which t may carry
		c.least = began
	}
}
