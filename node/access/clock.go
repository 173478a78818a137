package access

import "time"

// Clock is the time of day as far as it can be trusted: the latest of when the
// program was built, what was known when it was last saved, what an owner signed, and
// the system's clock once something synchronised that. Between those it goes on by
// the monotonic clock. The zero Clock knows nothing.
//
// Until an owner or the system has told it, a start leaves it with a time before
// which it is not, since nobody knows how long the site was off.
type Clock struct {
	least time.Time     // the time was at least that
	at    time.Duration // when the process had run for so long
	sure  bool          // and exactly that
}

// NewClock begins with the process: the build's time, and what was saved.
func NewClock(build, saved time.Time) Clock {
	var c Clock
	c.learn(0, build)
	c.learn(0, saved)
	return c
}

// Tell is the time from somebody who knows it: an owner who signed it just now. now is
// how long the process has run.
func (c *Clock) Tell(now time.Duration, t time.Time) {
	c.learn(now, t)
	c.sure = true
}

// Read returns the time, and whether it is that and not only not earlier. system is
// the system's clock, which counts while it is synchronised.
func (c *Clock) Read(now time.Duration, system time.Time, synchronised bool) (t time.Time, sure bool) {
	if synchronised {
		c.Tell(now, system)
	}
	return c.least.Add(now - c.at), c.sure
}

// learn never goes back.
func (c *Clock) learn(now time.Duration, t time.Time) {
	if t.After(c.least.Add(now - c.at)) {
		c.least, c.at = t.Round(0), now // without the monotonic clock, which t may carry
	}
}
