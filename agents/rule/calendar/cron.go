package calendar

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// cron is the times that cron's five fields select, as POSIX crontab has them, with the steps and
// names of Debian's cron (crontab(5)). Bit n of a set stands for n.
type cron struct {
	minutes, hours, days, months, weekdays uint64
	// either is set if both fields of days are restricted, that is, have no asterisk: then a day
	// that one of them selects is enough. Otherwise both have to select it.
	either bool
}

// field is one of the five.
type field struct {
	name     string
	min, max int
	names    []string // of min and what follows
}

var fields = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parseCron reads five fields in lower case, and refuses what never occurs.
func parseCron(text string) (cron, error) {
	words := strings.Fields(text)
	if len(words) != len(fields) {
		fix := `write minute, hour, day of month, month and day of week, such as "0 7 * * mon-fri"`
		if len(words) == 1 {
			fix = `write a time such as 7:30, "sunset - 20m" or cron's "0 7 * * mon-fri"`
		} else if len(words) == len(fields)+1 {
			fix = "leave out the seconds or the year"
		}
		return cron{}, fmt.Errorf("it has %d of cron's 5 fields; %s", len(words), fix)
	}
	var sets [len(fields)]uint64
	for i, f := range fields {
		set, err := f.parse(words[i])
		if err != nil {
			return cron{}, err
		}
		sets[i] = set
	}
	c := cron{minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4]}
	c.weekdays |= c.weekdays >> 7 & 1 // 7 is Sunday, too
	c.either = !strings.Contains(words[2], "*") && !strings.Contains(words[4], "*")
	if !c.either && !c.occurs() {
		return cron{}, fmt.Errorf("no month of field %.32q has a day of field %.32q; correct one of them", words[3], words[2])
	}
	return c, nil
}

// occurs tells whether a month has one of the days.
func (c cron) occurs() bool {
	for month := time.January; month <= time.December; month++ {
		longest := time.Date(2000, month+1, 0, 0, 0, 0, 0, time.UTC).Day() // in a leap year
		if has(c.months, int(month)) && bits.TrailingZeros64(c.days) <= longest {
			return true
		}
	}
	return false
}

// parse reads a list of values, ranges and steps.
func (f field) parse(text string) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		low, high := f.min, f.max
		values, stepText, hasStep := strings.Cut(item, "/")
		first, last, isRange := strings.Cut(values, "-")
		switch {
		case values == "*" && !hasStep && text != "*":
			return 0, fmt.Errorf("the %s %.32q has * in a list; write * alone or leave it out", f.name, text)
		case values == "*":
		default:
			if low, err = f.value(first); err != nil {
				return 0, err
			}
			high = low
			if !isRange && hasStep {
				return 0, fmt.Errorf("the %s %.32q has a step without a range; write %s-%d/%.8s", f.name, item, first, f.max, stepText)
			}
		}
		if isRange {
			if high, err = f.value(last); err != nil {
				return 0, err
			}
			if f.max == 7 && high == 0 && low > 0 {
				high = 7 // fri-sun
			}
			if high < low {
				return 0, fmt.Errorf("the %s %.32q runs backwards; write %s-%d,%d-%s", f.name, item, first, f.max, f.min, last)
			}
		}
		step, ok := 1, true
		if hasStep {
			step, ok = number(stepText, 2)
		}
		if !ok || step < 1 || step > f.max-f.min {
			return 0, fmt.Errorf("the %s has the step %.32q; write a number from 1 to %d", f.name, stepText, f.max-f.min)
		}
		for v := low; v <= high; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, nil
	}
	n, ok := number(text, 2)
	if !ok || n < f.min || n > f.max {
		names := ""
		if f.names != nil {
			names = fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
		}
		return 0, fmt.Errorf("the %s is %.32q; write %d to %d%s", f.name, text, f.min, f.max, names)
	}
	return n, nil
}

func has(set uint64, n int) bool { return set>>n&1 != 0 }

// hasDay tells whether the fields select a day of one of the months.
func (c cron) hasDay(day time.Time) bool {
	byDate, byWeekday := has(c.days, day.Day()), has(c.weekdays, int(day.Weekday()))
	if c.either {
		return byDate || byWeekday
	}
	return byDate && byWeekday
}

// first returns the first selected minute that is not before from, both of a wall clock. It goes
// by months and days, for five years.
func (c cron) first(from time.Time) (time.Time, bool) {
	from = from.Add(time.Minute - 1).Truncate(time.Minute)
	hour, minute := from.Hour(), from.Minute()
	day := midnight(from)
	for end := day.AddDate(0, 0, maxDays); !day.After(end); hour, minute = 0, 0 {
		if !has(c.months, int(day.Month())) {
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		for ; hour < 24 && c.hasDay(day); hour, minute = hour+1, 0 {
			if rest := c.minutes >> minute; rest != 0 && has(c.hours, hour) {
				return clock(day, hour, minute+bits.TrailingZeros64(rest)), true
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

// last returns the last selected minute that is before end and not before from.
func (c cron) last(end, from time.Time) (time.Time, bool) {
	until := end.Add(-1).Truncate(time.Minute) // the last minute that is possible
	hour, minute := until.Hour(), until.Minute()
	day := midnight(until)
	for ; !day.Before(midnight(from)); hour, minute = 23, 59 {
		if !has(c.months, int(day.Month())) {
			day = time.Date(day.Year(), day.Month(), 0, 0, 0, 0, 0, time.UTC)
			continue
		}
		for ; hour >= 0 && c.hasDay(day); hour, minute = hour-1, 59 {
			if rest := c.minutes & (2<<minute - 1); rest != 0 && has(c.hours, hour) {
				at := clock(day, hour, bits.Len64(rest)-1)
				return at, !at.Before(from)
			}
		}
		day = day.AddDate(0, 0, -1)
	}
	return time.Time{}, false
}

// clock returns a minute of day.
func clock(day time.Time, hour, minute int) time.Time {
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}
