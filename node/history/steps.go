package history

import (
	"time"

	"agentsite/device"
)

const day = 24 * time.Hour

// lengths are those of steps that people read well. Each divides the day, or is whole days.
var lengths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 30 * day, 91 * day, 365 * day, 3650 * day,
}

// earliest and latest limit the times of a query, so that nothing overflows.
var (
	earliest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC)
)

func clampTime(t time.Time) int64 {
	if t.Before(earliest) {
		t = earliest
	} else if t.After(latest) {
		t = latest
	}
	return t.UnixMilli()
}

// bounds returns the starts of the steps and the end of the last one, in Unix ms.
func (q Query) bounds() ([]int64, error) {
	if q.Location == nil {
		q.Location = time.UTC
	}
	from, to := time.UnixMilli(clampTime(q.From)).In(q.Location), time.UnixMilli(clampTime(q.To)).In(q.Location)
	if !from.Before(to) {
		return nil, device.Faultf(device.Invalid, "the end of the range must be after its start")
	}
	step := q.length()
	if step < time.Millisecond || step%time.Millisecond != 0 || step > day && step%day != 0 {
		return nil, device.Faultf(device.Invalid, "a step must be whole milliseconds, and above a day whole days")
	}
	if (to.UnixMilli()-from.UnixMilli())/step.Milliseconds() >= maxSteps-100 { // a day may have 25 hours
		return nil, device.Faultf(device.Invalid, "there would be more than %d steps: ask for longer steps, or for a shorter range", maxSteps)
	}
	at := align(from, step)
	all := []int64{at.UnixMilli()}
	for at.Before(to) && len(all) <= maxSteps {
		at = next(at, step)
		all = append(all, at.UnixMilli())
	}
	return all, nil
}

// length returns the length of a step.
func (q Query) length() time.Duration {
	if q.Step != 0 {
		return q.Step
	}
	steps := int64(min(q.Steps, maxSteps-100))
	if steps <= 0 {
		steps = 100
	}
	ms := clampTime(q.To) - clampTime(q.From)
	for _, l := range lengths {
		if (ms+l.Milliseconds()-1)/l.Milliseconds() <= steps {
			return l
		}
	}
	return lengths[len(lengths)-1]
}

// align returns the start of the step that has t in it.
func align(t time.Time, step time.Duration) time.Time {
	if step >= day {
		year, month, date := t.Date()
		days := int64(step / day)
		n := floor(time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Unix(), 86400) / 86400
		start := time.Date(year, month, date-int(n-floor(n, days)), 0, 0, 0, 0, t.Location())
		if start.Hour() >= 12 { // that day begins at one o'clock
			start = start.Add(day - clock(start))
		}
		return start
	}
	since := clock(t)
	start := t.Add(-(since % step))
	_, here := t.Zone()
	_, there := start.Zone()
	return start.Add(time.Duration(here-there) * time.Second) // where the zone's offset has changed since
}

// clock returns what the clock shows, as the time since midnight.
func clock(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Duration(t.Nanosecond())
}

// next returns the start of the step that follows the step at t.
func next(t time.Time, step time.Duration) time.Time {
	for by := step; ; by += step {
		if step >= day {
			by = max(by, step+12*time.Hour) // a day may have 25 hours
		}
		if n := align(t.Add(by), step); n.After(t) {
			return n
		}
	}
}
