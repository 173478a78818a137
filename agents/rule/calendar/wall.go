package calendar

import "time"

// maxZone is more than any zone differs from UTC, and than any has turned its clock back.
const maxZone = 26 * time.Hour

// wallClock returns what the local clock shows at t, as a time in UTC.
func wallClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Round(0).UTC().Add(time.Duration(offset) * time.Second)
}

// midnight returns the beginning of the day of a wall clock's time.
func midnight(wall time.Time) time.Time {
	year, month, day := wall.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// firstInstant returns the first instant at which the local clock of loc shows wall or a later
// time. It never decreases as wall increases.
func firstInstant(wall time.Time, loc *time.Location) time.Time {
	for t := wall.Add(-maxZone).In(loc); ; {
		_, offset := t.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if at.Before(t) {
			at = t
		}
		end, ends := zoneEnd(t)
		if !ends || at.Before(end) {
			return at
		}
		t = end
	}
}

// firstPending returns the earliest time that the local clock has not shown by t, the instant t
// included: firstInstant(wall) is after t exactly if wall is not before firstPending(t).
func firstPending(t time.Time) time.Time {
	pending := wallClock(t).Add(1) // one nanosecond
	for u := t.Add(-maxZone); ; {
		end, ends := zoneEnd(u)
		if !ends || end.After(t) {
			return pending
		}
		// In a repeated hour, the clock has shown what it showed before it was turned back.
		if reached := wallClock(u).Add(end.Sub(u)); reached.After(pending) {
			pending = reached
		}
		u = end
	}
}

// zoneEnd returns an instant after t up to which t's offset from UTC holds. ends is false if it
// holds for ever.
func zoneEnd(t time.Time) (end time.Time, ends bool) {
	_, end = t.ZoneBounds()
	if end.IsZero() {
		return end, false
	}
	if !end.After(t) {
		// On the last day of a leap year, Go 1.26 says that the rule of a zone ended with day 365.
		end = t.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return end, true
}
