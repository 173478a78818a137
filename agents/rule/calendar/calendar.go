// Package calendar computes when a scheduled rule runs: at a time of day, at sunrise or sunset,
// or by cron's five fields, in local time. It reads no clock and starts nothing; all its values
// are immutable and safe for concurrent use. Zones come from the caller's time.Location.
//
// A time of day and cron name minutes of the local clock. Such a minute occurs at the first
// instant at which the local clock shows it or a later time. It follows that
//   - a minute that a change to summer time skips occurs at the first instant after the gap;
//     several such minutes are one occurrence, named after the first of them;
//   - a minute that the change back repeats occurs on the first pass only: "*/5 * * * *" pauses
//     on the second pass, because each minute has one key and runs at most once;
//   - a whole day that a zone skips, as Samoa did, occurs when the next day begins.
//
// Sunrise and sunset are instants, whatever the local clock does: with an offset they can be on
// the second pass.
package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	maxText   = 256                // bytes of a schedule
	maxDays   = 5*365 + 2          // how far Next and Last search
	maxOffset = 12 * time.Hour     // from sunrise or sunset, so that it stays near its day
	keyLayout = "2006-01-02T15:04" // of the local time
)

// Schedule is a list of points in local time. The zero Schedule has none. Schedules can be
// compared with ==.
type Schedule struct {
	cron   cron // unless sun is set
	sun    sunEvent
	offset time.Duration
}

type sunEvent uint8

const (
	noSun sunEvent = iota
	sunrise
	sunset
)

// Parse reads a time of day ("7:30", "sunset", "sunset - 20m", "sunrise + 1h30m") or cron's
// five fields ("*/5 8-18 * * mon-fri"). Upper and lower case are the same.
func Parse(text string) (Schedule, error) {
	if len(text) > maxText {
		return Schedule{}, fmt.Errorf("the schedule is %d bytes long; shorten it to at most %d", len(text), maxText)
	}
	words := strings.ToLower(strings.TrimSpace(text))
	var s Schedule
	var err error
	switch {
	case words == "":
		return Schedule{}, errors.New(`the schedule is empty; write a time such as 7:30, "sunset - 20m" or cron's "0 7 * * mon-fri"`)
	case strings.HasPrefix(words, "sunrise"):
		s.sun = sunrise
		s.offset, err = parseOffset("sunrise", words[len("sunrise"):])
	case strings.HasPrefix(words, "sunset"):
		s.sun = sunset
		s.offset, err = parseOffset("sunset", words[len("sunset"):])
	case strings.Contains(words, ":"):
		s.cron, err = parseTimeOfDay(words)
	default:
		s.cron, err = parseCron(words)
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", text, err)
	}
	return s, nil
}

// parseTimeOfDay reads H:MM, which is a cron of every day.
func parseTimeOfDay(text string) (cron, error) {
	h, m, _ := strings.Cut(text, ":")
	hour, hourOK := number(h, 2)
	minute, minuteOK := number(m, 2)
	if !hourOK || !minuteOK || len(m) != 2 || hour > 23 || minute > 59 {
		return cron{}, errors.New("this is no time of day; write one from 0:00 to 23:59, such as 7:30")
	}
	return parseCron(fmt.Sprintf("%d %d * * *", minute, hour))
}

// parseOffset reads what follows sunrise or sunset: nothing, or a sign and a length of time.
func parseOffset(event, text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	sign, length := text[0], strings.TrimSpace(text[1:])
	hours, minutes, hasHours := strings.Cut(length, "h")
	if !hasHours {
		hours, minutes = "0", length
	}
	h, hoursOK := number(hours, 3)
	m, minutesOK := number(strings.TrimSuffix(minutes, "m"), 3)
	if minutes == "" && hasHours {
		m, minutesOK = 0, true
	} else if !strings.HasSuffix(minutes, "m") {
		minutesOK = false
	}
	if (sign != '+' && sign != '-') || !hoursOK || !minutesOK {
		return 0, fmt.Errorf(`%.32q is no offset; write it in hours and minutes, such as "%s - 20m" or "%[2]s + 1h30m"`, text, event)
	}
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if offset > maxOffset {
		return 0, fmt.Errorf("the offset is longer than 12h; use sunrise, sunset or a time of day that is nearer")
	}
	if sign == '-' {
		offset = -offset
	}
	return offset, nil
}

// number reads 1 to digits decimal digits.
func number(text string, digits int) (n int, ok bool) {
	if text == "" || len(text) > digits {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// UsesSun tells whether Next and Last need a place.
func (s Schedule) UsesSun() bool { return s.sun != noSun }

// Next returns the first occurrence after t, in t's location; times of the sun are rounded to
// the minute. key is the local time that the schedule means, such as "2026-03-29T02:30": each
// occurrence has a key of its own, which depends on neither t nor the process. ok is false if
// there is none within five years, or if the schedule uses the sun and place is nil.
func (s Schedule) Next(t time.Time, place *Place) (at time.Time, key string, ok bool) {
	if s.UsesSun() {
		return s.nextSun(t, place)
	}
	label, ok := s.cron.first(firstPending(t))
	if !ok {
		return time.Time{}, "", false
	}
	return firstInstant(label, t.Location()), label.Format(keyLayout), true
}

// Last returns the latest occurrence at or before t and not before since, in t's location, with
// the same time and key as Next. It serves a run that was missed while the site was off. It
// looks back five years at most.
func (s Schedule) Last(t, since time.Time, place *Place) (at time.Time, key string, ok bool) {
	if earliest := t.AddDate(0, 0, -maxDays); since.Before(earliest) {
		since = earliest
	}
	since = since.In(t.Location())
	if s.UsesSun() {
		return s.lastSun(t, since, place)
	}
	label, ok := s.cron.last(firstPending(t), firstPending(since.Add(-1)))
	if !ok {
		return time.Time{}, "", false
	}
	// Next names the minutes of one gap after the first.
	return s.Next(firstInstant(label, t.Location()).Add(-1), nil)
}

// nextSun is Next by the sun. An event and its offset are at most two days away from noon of
// the day that they belong to.
func (s Schedule) nextSun(t time.Time, place *Place) (at time.Time, key string, ok bool) {
	day := midnight(wallClock(t)).AddDate(0, 0, -2)
	for range maxDays + 2 {
		if at, ok := s.sunOn(day, t.Location(), place); ok && at.After(t) {
			return at, at.Format(keyLayout), true
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, "", false
}

// lastSun is Last by the sun.
func (s Schedule) lastSun(t, since time.Time, place *Place) (at time.Time, key string, ok bool) {
	day := midnight(wallClock(t)).AddDate(0, 0, 2)
	for earliest := midnight(wallClock(since)).AddDate(0, 0, -2); !day.Before(earliest); day = day.AddDate(0, 0, -1) {
		if at, ok := s.sunOn(day, t.Location(), place); ok && !at.After(t) {
			if at.Before(since) {
				break
			}
			return at, at.Format(keyLayout), true
		}
	}
	return time.Time{}, "", false
}

// sunOn returns the occurrence that belongs to day, a local date as midnight in UTC. ok is
// false if the sun does not rise or set, or if the zone skips the day.
func (s Schedule) sunOn(day time.Time, loc *time.Location, place *Place) (at time.Time, ok bool) {
	if place == nil {
		return time.Time{}, false
	}
	noon := firstInstant(day.Add(12*time.Hour), loc)
	if !midnight(wallClock(noon)).Equal(day) {
		return time.Time{}, false
	}
	rise, set, ok := place.sunAround(noon)
	if s.sun == sunrise {
		set = rise
	}
	return set.Add(s.offset).Round(time.Minute), ok
}
