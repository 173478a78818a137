package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxTimes bounds the schedules of a list.
const maxTimes = 16

// List is several schedules, each of whose occurrences is one of the list.
type List []Schedule

// ParseList reads what Parse reads, and several times of day with commas between them: "7:30, sunset - 20m".
func ParseList(text string) (List, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the schedule is %d bytes long; shorten it to at most %d", len(text), maxText)
	}
	parts := []string{text}
	if small := strings.ToLower(text); strings.Contains(small, ":") || strings.Contains(small, "sunrise") ||
		strings.Contains(small, "sunset") {
		parts = strings.Split(text, ",") // those of cron's fields do not separate times
	}
	if len(parts) > maxTimes {
		return nil, fmt.Errorf("there are %d times; write at most %d, or another rule", len(parts), maxTimes)
	}
	var all List
	for _, part := range parts {
		if part = strings.TrimSpace(part); part == "" && len(parts) > 1 {
			return nil, errors.New("there is no time before or after a comma; remove the comma")
		}
		s, err := Parse(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// UsesSun tells whether one of the schedules does.
func (l List) UsesSun() bool {
	for _, s := range l {
		if s.UsesSun() {
			return true
		}
	}
	return false
}

// Next is Schedule.Next of the first occurrence. Of two at one time it is the one written first, which
// stands for both.
func (l List) Next(t time.Time, place *Place) (at time.Time, key string, ok bool) {
	for _, s := range l {
		if next, name, some := s.Next(t, place); some && (!ok || next.Before(at)) {
			at, key, ok = next, name, true
		}
	}
	return at, key, ok
}

// Last is Schedule.Last of the latest occurrence, and of two at one time of the one written first.
func (l List) Last(t, since time.Time, place *Place) (at time.Time, key string, ok bool) {
	for _, s := range l {
		if last, name, some := s.Last(t, since, place); some && (!ok || last.After(at)) {
			at, key, ok = last, name, true
		}
	}
	return at, key, ok
}
