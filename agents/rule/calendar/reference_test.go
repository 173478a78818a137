package calendar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// minute is a local time to the minute, in minutes since 1970.
type minute int64

func (m minute) time() time.Time { return time.Unix(int64(m)*60, 0).UTC() }

// reached is an instant at which the local clock shows minutes that it has not shown before.
type reached struct {
	at          time.Time
	first, last minute
}

// timeline walks from one instant to another and looks at the local clock at each step. It knows
// nothing of zones but what they show.
func timeline(from, to time.Time, step time.Duration) (all []reached) {
	const warmUp = 50 * time.Hour // longer than any clock has been turned back
	shown := minute(math.MinInt64)
	for at := from.Add(-warmUp); !at.After(to); at = at.Add(step) {
		year, month, day := at.Date()
		hour, min, _ := at.Clock()
		now := minute(time.Date(year, month, day, hour, min, 0, 0, time.UTC).Unix() / 60)
		if now > shown {
			if !at.Before(from) {
				all = append(all, reached{at, shown + 1, now})
			}
			shown = now
		}
	}
	return all
}

// expression is a cron expression that was made from the sets that it means.
type expression struct {
	text     string
	sets     [5]map[int]bool
	asterisk [5]bool
}

func (e expression) selects(m minute) bool {
	at := m.time()
	if !e.sets[0][at.Minute()] || !e.sets[1][at.Hour()] || !e.sets[3][int(at.Month())] {
		return false
	}
	date := e.sets[2][at.Day()]
	weekday := e.sets[4][int(at.Weekday())] || at.Weekday() == time.Sunday && e.sets[4][7]
	if e.asterisk[2] || e.asterisk[4] {
		return date && weekday
	}
	return date || weekday
}

// randomExpression selects often enough around near that a few days have occurrences.
func randomExpression(r *rand.Rand, near time.Time) expression {
	limits := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}
	names := [5][]string{3: strings.Fields("- Jan feb mar apr may jun jul aug SEP oct nov dec"), 4: strings.Fields("sun mon tue wed thu fri sat")}
	var e expression
	var words []string
	for i, limit := range limits {
		low, high := limit[0], limit[1]
		e.sets[i] = make(map[int]bool)
		write := func(v int) string {
			if v < len(names[i]) && r.IntN(2) == 0 {
				return names[i][v]
			}
			return fmt.Sprintf([]string{"%d", "%02d"}[r.IntN(2)], v)
		}
		if r.IntN(5) < []int{1, 2, 3, 4, 3}[i] {
			e.asterisk[i] = true
			for v := low; v <= high; v++ {
				e.sets[i][v] = true
			}
			words = append(words, "*")
			continue
		}
		var items []string
		for range 1 + r.IntN(3) {
			a := low + r.IntN(high-low+1)
			switch {
			case i == 1 && r.IntN(2) == 0:
				a = r.IntN(4) // when clocks are changed
			case i == 2 && r.IntN(2) == 0:
				a = near.Day()
			case i == 3 && r.IntN(4) > 0:
				a = int(near.Month())
			}
			b, step, item := a, 1, write(a)
			switch r.IntN(4) {
			case 0:
				b = a + r.IntN(high-a+1)
				item += "-" + fmt.Sprint(b)
			case 1:
				b, step = a+r.IntN(high-a+1), 1+r.IntN(high-low)
				item += fmt.Sprintf("-%d/%d", b, step)
			case 2:
				if r.IntN(2) == 0 {
					a, b, step = low, high, 1+r.IntN(high-low)
					item = fmt.Sprintf("*/%d", step)
					e.asterisk[i] = true
				}
			}
			for v := a; v <= b; v++ {
				if (v-a)%step == 0 {
					e.sets[i][v] = true
				}
			}
			items = append(items, item)
		}
		words = append(words, strings.Join(items, ","))
	}
	e.text = strings.Join(words, " ")
	return e
}

// occurrence is what Next returns.
type occurrence struct {
	at  time.Time
	key string
}

// TestReference compares random expressions with the walk, around changes of time.
func TestReference(t *testing.T) {
	expressions := 40
	if testing.Short() { // on an emulated processor
		expressions = 8
	}
	if os.Getenv("SOAK") != "" {
		expressions = 3000
	}
	for _, c := range []struct {
		zone, near string
		step       time.Duration
	}{
		{"Europe/Berlin", "2026-03-29", time.Minute}, {"Europe/Berlin", "2026-10-25", time.Minute},
		{"Europe/Berlin", "2028-12-31", time.Minute}, {"Europe/Berlin", "2044-03-27", time.Minute},
		{"Europe/London", "1968-10-27", time.Minute}, {"Europe/Dublin", "2026-10-25", time.Minute},
		{"America/New_York", "2026-03-08", time.Minute}, {"America/New_York", "2026-11-01", time.Minute},
		{"America/New_York", "2040-12-31", time.Minute}, {"America/St_Johns", "2005-10-30", time.Minute},
		{"America/Nuuk", "2026-03-28", time.Minute}, {"America/Caracas", "2007-12-09", time.Minute},
		{"America/Sao_Paulo", "2018-11-04", time.Minute}, {"Africa/Casablanca", "2026-02-15", time.Minute},
		{"Africa/Cairo", "2026-04-24", time.Minute}, {"Asia/Pyongyang", "2018-05-05", time.Minute},
		{"Asia/Beirut", "2026-10-25", time.Minute}, {"Antarctica/Troll", "2026-03-29", time.Minute},
		{"Antarctica/Troll", "2026-10-25", time.Minute}, {"Australia/Lord_Howe", "2026-04-05", time.Minute},
		{"Australia/Lord_Howe", "2026-10-04", time.Minute}, {"Pacific/Chatham", "2026-04-05", time.Minute},
		{"Pacific/Apia", "2011-12-30", time.Minute}, {"Pacific/Kwajalein", "1993-08-21", time.Minute},
		{"Africa/Monrovia", "1972-01-07", 30 * time.Second}, // by 44½ minutes
		{"America/Juneau", "1867-10-19", time.Second},       // a day again, and local mean time
		{"Asia/Manila", "1844-12-31", time.Second},          // a day left out
		{"UTC", "2026-02-28", time.Minute},
	} {
		if c.step == time.Second && testing.Short() {
			continue // they walk by seconds
		}
		t.Run(strings.ReplaceAll(c.zone, "/", "-")+c.near, func(t *testing.T) {
			loc := zone(t, c.zone)
			near := local(t, time.UTC, c.near+"T00:00:00")
			from, to := near.Add(-40*time.Hour).In(loc), near.Add(64*time.Hour).In(loc)
			walk := timeline(from, to, c.step)
			r := rand.New(rand.NewPCG(1, uint64(near.Unix())))
			found := 0
			for range expressions {
				e := randomExpression(r, near)
				s, err := Parse(e.text)
				if err != nil {
					if slices.ContainsFunc(walk, func(w reached) bool { return e.selects(w.last) }) {
						t.Errorf("%q: %v", e.text, err)
					}
					continue
				}
				var want []occurrence
				for _, w := range walk {
					for m := w.first; m <= w.last; m++ {
						if e.selects(m) {
							want = append(want, occurrence{w.at, m.time().Format(keyLayout)})
							break
						}
					}
				}
				found += len(want)
				compare(t, e.text, s, want, from, to, r)
			}
			if found < expressions {
				t.Errorf("only %d occurrences of %d expressions", found, expressions)
			}
		})
	}
}

// compare follows Next through want, and asks Next and Last from random times.
func compare(t *testing.T, text string, s Schedule, want []occurrence, from, to time.Time, r *rand.Rand) {
	t.Helper()
	at := from.Add(-1)
	for i := 0; i <= len(want); i++ {
		next, key, ok := s.Next(at, nil)
		if i == len(want) {
			if ok && !next.After(to) {
				t.Errorf("%q: one too many, %v %s", text, next, key)
			}
			break
		}
		if !ok || !next.Equal(want[i].at) || key != want[i].key {
			t.Errorf("%q after %v: %v %s, want %v %s", text, at, next, key, want[i].at, want[i].key)
			return
		}
		at = next
	}
	for range 20 {
		at := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
		if len(want) > 0 && r.IntN(2) == 0 {
			at = want[r.IntN(len(want))].at.Add(time.Duration(r.IntN(3) - 1))
		}
		i := slices.IndexFunc(want, func(o occurrence) bool { return o.at.After(at) })
		if i >= 0 {
			if next, key, ok := s.Next(at, nil); !ok || !next.Equal(want[i].at) || key != want[i].key {
				t.Errorf("%q: Next(%v) is %v %s, want %v", text, at, next, key, want[i])
			}
		} else {
			i = len(want)
		}
		since := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
		if i > 0 && r.IntN(2) == 0 {
			since = want[i-1].at.Add(time.Duration(r.IntN(2)))
		}
		last, key, ok := s.Last(at, since, nil)
		if wanted := i > 0 && !want[i-1].at.Before(since); ok != wanted {
			t.Errorf("%q: Last(%v, %v) is %v, %v", text, at, since, last, ok)
		} else if ok && (!last.Equal(want[i-1].at) || key != want[i-1].key) {
			t.Errorf("%q: Last(%v, %v) is %v %s, want %v", text, at, since, last, key, want[i-1])
		}
	}
}
