package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxHolidays bounds a list of holidays.
const maxHolidays = 200

// Holidays are days of local time. The zero Holidays has none.
type Holidays []span

// span is the days from one to another, both included: of a year as 20261224, of every year as 1224.
type span struct{ from, to int }

// ParseHolidays reads days of every year ("dec 25"), of one year ("2027-03-26"), and ranges of either
// ("dec 24..jan 6").
func ParseHolidays(texts []string) (Holidays, error) {
	if len(texts) > maxHolidays {
		return nil, fmt.Errorf("there are %d entries; write at most %d, as ranges such as dec 24..jan 6",
			len(texts), maxHolidays)
	}
	all := make(Holidays, 0, len(texts))
	for _, text := range texts {
		first, last, isRange := strings.Cut(text, "..")
		s := span{from: parseDay(first)}
		if s.to = s.from; isRange {
			s.to = parseDay(last)
		}
		switch yearly := s.from < yearUnit; {
		case s.from == 0 || s.to == 0:
			return nil, fmt.Errorf("%.40q is no day; write such as dec 25, 2027-03-26 or dec 24..jan 6", text)
		case yearly != (s.to < yearUnit):
			return nil, fmt.Errorf("%.40q has one day with a year and one without; write both in one way", text)
		case !yearly && s.to < s.from:
			return nil, fmt.Errorf("%.40q ends before it begins; write the earlier day first", text)
		}
		all = append(all, s)
	}
	return all, nil
}

// yearUnit is a year in the numbers of days, as numberOf has them.
const yearUnit = 10000

// numberOf returns the number of a day, of every year where year is 0.
func numberOf(year int, month time.Month, day int) int { return year*yearUnit + int(month)*100 + day }

// parseDay returns the number of a day, and 0 for what is none.
func parseDay(text string) int {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 1 {
		if t, err := time.Parse(time.DateOnly, words[0]); err == nil && t.Year() > 0 {
			return numberOf(t.Date())
		}
		return 0
	}
	if len(words) != 2 {
		return 0
	}
	month := slices.Index(fields[3].names, words[0]) + 1
	day, ok := number(words[1], 2)
	if !ok || month == 0 || day < 1 || time.Date(2000, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return 0
	}
	return numberOf(0, time.Month(month), day)
}

// Has reports whether the day of t in its location is one of the holidays.
func (h Holidays) Has(t time.Time) bool {
	inYear := numberOf(t.Date())
	for _, s := range h {
		day := inYear
		if s.from < yearUnit {
			day %= yearUnit
		}
		if day >= s.from && day <= s.to || s.from > s.to && (day >= s.from || day <= s.to) {
			return true
		}
	}
	return false
}
