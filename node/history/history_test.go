package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"agentsite/device"
)

var oneMeasurement = map[string]device.Point{"a/t": {Kind: device.KindMeasurement}}

func number(v float64, at time.Time) device.Reading {
	return device.Reading{Point: "a/t", Value: device.Number(v), Quality: device.Good, At: at}
}

// show writes summaries with their start in minutes since from.
func show(all []device.Summary, from time.Time) (out []string) {
	for _, s := range all {
		out = append(out, fmt.Sprintf("%v: %v %v %v", s.At.Sub(from).Minutes(), s.Min, device.Tidy(s.Mean), s.Max))
	}
	return out
}

func TestMinutes(t *testing.T) {
	type at struct {
		minutes, v float64
	}
	hour := []at{{0, 1}, {0.5, 3}, {1, 10}, {2.99, 20}, {3, 30}, {59.5, 5}}
	for _, tt := range []struct {
		name     string
		readings []at
		step     float64 // minutes
		want     []string
	}{
		{"nothing", nil, 1, nil},
		{"one", []at{{0, 21.5}}, 1, []string{"0: 21.5 21.5 21.5"}},
		{"a minute each", hour, 1, []string{"0: 1 2 3", "1: 10 10 10", "2: 20 20 20", "3: 30 30 30", "59: 5 5 5"}},
		{"two minutes each", hour, 2, []string{"0: 1 4.66666667 10", "2: 20 25 30", "58: 5 5 5"}},
		{"all in one", hour, 60, []string{"0: 1 11.5 30"}},
		{"negative and small", []at{{0, -0.001}, {0, 0}, {0, -0.003}}, 1, []string{"0: -0.003 -0.00133333333 0"}},
		{"as large as it gets", []at{{0, 1e300}, {0, -1e300}}, 1, []string{"0: -1e+300 0 1e+300"}},
		{"a sum that is too large", []at{{0, 1e308}, {0, 1e308}, {0, 1e308}}, 1, []string{"0: 1e+308 1e+308 1e+308"}},
		{"backwards is not kept", []at{{5, 1}, {4, 9}, {5, 3}}, 60, []string{"0: 1 2 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := New(oneMeasurement)
				for _, r := range tt.readings {
					h.Record(number(r.v, h.start.Add(time.Duration(r.minutes*float64(time.Minute)))))
				}
				from := h.start // midnight
				got, err := h.Query(Query{Address: "a/t", From: from, To: from.Add(time.Hour), Step: time.Duration(tt.step * float64(time.Minute))})
				if err != nil {
					t.Fatal(err)
				}
				if tt.name == "a sum that is too large" && len(got) == 1 {
					got[0].Mean = math.Min(got[0].Mean, 1e308) // the mean is within the range, and no Inf
				}
				if !slices.Equal(show(got, from), tt.want) {
					t.Errorf("%q, want %q", show(got, from), tt.want)
				}
			})
		})
	}
}

// TestIgnored: readings of points that are not listed, and of other types, are ignored.
func TestIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(oneMeasurement)
		now := time.Now()
		for _, r := range []device.Reading{
			{Point: "a/other", Value: device.Number(1), Quality: device.Good, At: now},
			{Point: "a/t", Value: device.Bool(true), Quality: device.Good, At: now},
			{Point: "a/t", Value: device.Text("x"), Quality: device.Good, At: now},
			{Point: "a/t", Value: device.Number(math.NaN()), Quality: device.Good, At: now},
			{Point: "a/t", Quality: device.Good, At: now},
		} {
			h.Record(r)
		}
		h.Record(device.Reading{Point: "a/t", Value: device.Number(1), Quality: device.Bad, At: now})
		if got, err := h.Query(Query{Address: "a/other", From: now.Add(-time.Hour), To: now.Add(time.Hour)}); got != nil || err != nil {
			t.Errorf("%v %v", got, err)
		}
		all, err := h.Query(Query{Address: "a/t", From: now.Add(-time.Hour), To: now.Add(time.Hour), Step: time.Hour})
		if err != nil || len(all) != 1 || all[0].Count != 1 || all[0].Good != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func lastHour(h *History, address string) []device.Summary {
	all, _, _ := h.Summaries(address, time.Now().Add(-time.Hour), time.Now().Add(time.Minute), 2)
	return all
}

// TestKeep: Keep keeps the series of points in the new list. One that was not in it finds its
// past on the disk, unless it has another unit now.
func TestKeep(t *testing.T) {
	for _, opened := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			list := func(unit string, all ...string) map[string]device.Point {
				m := make(map[string]device.Point)
				for _, a := range all {
					m[a] = device.Point{Kind: device.KindMeasurement, Unit: "Cel"}
				}
				m["a/unit"] = device.Point{Kind: device.KindMeasurement, Unit: unit}
				return m
			}
			disk := newMemDisk()
			h := New(list("Cel", "a/stays", "a/goes"))
			if opened {
				if err := h.open(disk, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when string, stays, goes, unit int) {
				t.Helper()
				for p, want := range map[string]int{"a/stays": stays, "a/goes": goes, "a/comes": 0, "a/unit": unit} {
					if got := lastHour(h, p); len(got) != min(want, 1) || want > 0 && got[0].Count != want {
						t.Errorf("%s: %s has %+v, want %d readings", when, p, got, want)
					}
				}
			}
			record := func() {
				for _, p := range []string{"a/stays", "a/goes", "a/unit"} {
					r := number(1, time.Now())
					r.Point = p
					h.Record(r)
				}
			}
			known := 0 // what is found again
			if opened {
				known = 1
			}
			record()
			h.flush(false)
			h.Keep(list("[degF]", "a/comes", "a/stays"))
			check("gone", 1, 0, 0)
			time.Sleep(time.Second)
			record()
			check("gone, and read", 2, 0, 1)
			h.Keep(list("Cel", "a/comes", "a/stays", "a/goes"))
			check("back", 2, known, known)
			time.Sleep(time.Second)
			record()
			check("read again", 3, known+1, known+1)
			if !opened {
				return
			}
			h.flush(true)
			h = New(list("[degF]", "a/stays", "a/goes"))
			if err := h.open(disk, Options{}); err != nil {
				t.Fatal(err)
			}
			check("after a restart", 3, 2, 1)
		})
	}
}

// TestSteps: at every time, in zones with all kinds of changes, a step begins where the local clock
// is a multiple of its length. Steps follow each other without gaps.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range lengths {
			for range 300 {
				at := time.UnixMilli(rng.Int64N(2_000_000_000_000)).In(zone)
				start := align(at, step)
				end := next(start, step)
				if start.After(at) || !end.After(at) {
					t.Fatalf("%s, %v: %v is not in the step from %v to %v", name, step, at, start, end)
				}
				if again, last := align(start, step), align(end.Add(-time.Millisecond), step); !again.Equal(start) || !last.Equal(start) {
					t.Fatalf("%s, %v: the step from %v begins at %v and %v", name, step, start, again, last)
				}
				if most := step + 25*time.Hour; end.Sub(start) > most {
					t.Fatalf("%s, %v: the step from %v to %v", name, step, start, end)
				}
			}
		}
	}
}

// TestLocalDays: a day is as long as it is where the site is.
func TestLocalDays(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	q := Query{From: time.Date(2026, 3, 28, 12, 0, 0, 0, berlin), To: time.Date(2026, 3, 31, 0, 0, 0, 0, berlin), Step: day, Location: berlin}
	bounds, err := q.bounds()
	if err != nil {
		t.Fatal(err)
	}
	var hours []int64
	for i := range len(bounds) - 1 {
		hours = append(hours, (bounds[i+1]-bounds[i])/msHour)
	}
	if !slices.Equal(hours, []int64{24, 23, 24}) {
		t.Errorf("%v", hours)
	}
}

// TestBounds: no query takes more than its share, however far the times are apart.
func TestBounds(t *testing.T) {
	h := New(oneMeasurement)
	far := []time.Time{{}, time.Unix(0, 0), time.Now().AddDate(-10, 0, 0), time.Now(), time.Now().AddDate(10, 0, 0), time.Unix(math.MaxInt64/1_000_000, 0), time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64, 0)}
	for _, from := range far {
		for _, to := range far {
			for _, step := range []time.Duration{-1, 0, 1, time.Millisecond, time.Second, 25 * time.Hour, 365 * day, math.MaxInt64} {
				q := Query{Address: "a/t", From: from, To: to, Step: step, Steps: math.MaxInt}
				if bounds, err := q.bounds(); err == nil && (len(bounds) > maxSteps+2 || len(bounds) < 2) {
					t.Errorf("%+v has %d steps", q, len(bounds))
				}
				h.Query(q)
			}
			h.Summaries("a/t", from, to, math.MaxInt)
			h.ValueAt("a/t", from)
		}
	}
}

// TestClock: a board without a clock begins in 1970, or ten years ahead. Its new records are later
// than the old ones, and get their time when that is known.
func TestClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Since(time.Unix(1000, 0)), 10 * 365 * day, -10 * 365 * day} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			for range 10 {
				w.reading()
				time.Sleep(time.Second)
			}
			before := w.wall()
			w.known, w.skew = false, skew
			w.restart(true)
			if w.wall() < before {
				t.Errorf("it begins at %v, before what it has", time.UnixMilli(w.wall()))
			}
			for range 24 * 6 { // a day without a clock
				w.reading()
				time.Sleep(10 * time.Minute)
				w.h.flush(false)
			}
			w.check()
			w.known = true
			w.step(-skew)
			w.h.flush(false)
			if off := time.Until(time.UnixMilli(w.wall())); off.Abs() > time.Second {
				t.Errorf("it is %v off", off)
			}
			// Only the raw readings are compared after a step that is no whole hour.
			check := func() {
				var got []read1
				w.h.Samples("a/t", longAgo, farOff, func(at time.Time, v float64, good bool) bool {
					got = append(got, read1{at.UnixMilli(), v, good})
					return true
				})
				if !slices.Equal(got, w.ref.points["a/t"]) {
					t.Error("the readings do not have their times")
				}
			}
			check()
			w.restart(false)
			check()
		})
	}
}

// TestClockAhead: a clock that was wrong for a while moves no reading for good, wherever the power is
// cut before it is set right, and however long the tiers keep what it was before.
func TestClockAhead(t *testing.T) {
	for _, unsure := range []bool{false, true} { // the next runs have no network at first
		for _, long := range []int{30, 30 * 60} {
			synctest.Test(t, func(t *testing.T) {
				d, ahead, known := newMemDisk(), time.Duration(0), true
				var h *History
				open := func() {
					t.Helper()
					h = New(oneMeasurement)
					if err := h.open(d, Options{Now: func() (time.Time, bool) { return time.Now().Add(ahead), known }}); err != nil {
						t.Fatal(err)
					}
				}
				began, made := time.Now(), 0
				record := func(n int) {
					for range n {
						h.Record(number(float64(made), time.Now()))
						made++
						time.Sleep(time.Minute)
						h.flush(false)
					}
				}
				open()
				record(long)
				right := time.Now()
				ahead = 365 * day
				record(2)
				known = !unsure
				open() // the power was cut
				record(3)
				if got := len(values(h, "a/t")); got != made {
					t.Errorf("%d of %d readings", got, made)
				}
				ahead = 0
				open()
				record(2)
				known = true
				record(3)
				check := func(tier string) {
					t.Helper()
					all, err := h.Query(Query{Address: "a/t", From: began, To: time.Now(), Step: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					count := 0
					for _, s := range all {
						count += s.Good
					}
					if count != made {
						t.Errorf("%s: %d of %d readings are in their time", tier, count, made)
					}
				}
				check("raw")
				for i, last := range values(h, "a/t") {
					at := began.Add(time.Duration(i) * time.Minute)
					h.Samples("a/t", at.Add(-time.Second), at.Add(time.Second), func(_ time.Time, v float64, _ bool) bool {
						if v != last && at.Before(right) {
							t.Errorf("at %v is %v, want %v", at, v, last)
						}
						return true
					})
				}
				h.flush(true)
				for _, gone := range []string{"raw", "minutes"} {
					for name := range d.files {
						if strings.HasPrefix(name, gone) {
							delete(d.files, name)
						}
					}
					open()
					check("without " + gone)
				}
			})
		}
	}
}

// TestValueAt: a state has its value until the next change, also over blocks, and none while
// the site is off.
func TestValueAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		set := func(on bool) {
			w.h.Record(device.Reading{Point: "b/relay", Value: device.Bool(on), Quality: device.Good, At: time.Now(), Holder: "rule:frost"})
		}
		want := func(at time.Time, on, known bool, since time.Time) {
			t.Helper()
			c, ok := w.h.ValueAt("b/relay", at)
			if ok != known || ok && (c.Value != device.Bool(on) || c.At.UnixMilli() != since.UnixMilli() || c.Holder != "rule:frost") {
				t.Errorf("%+v, %v", c, ok)
			}
		}
		hourly := func(n int) {
			for range n {
				w.h.Record(device.Reading{Point: "a/t", Value: device.Number(1), Quality: device.Good, At: time.Now()})
				w.h.flush(false)
				time.Sleep(time.Minute)
			}
		}
		start := time.Now()
		time.Sleep(time.Minute)
		on := time.Now()
		set(true)
		hourly(300)
		off := time.Now()
		set(false)
		check := func() {
			t.Helper()
			want(start, false, false, on)
			want(on, true, true, on)
			want(on.Add(2*time.Hour), true, true, on)
			want(off.Add(-time.Millisecond), true, true, on)
			want(off, false, true, off)
			want(off.Add(time.Minute), false, true, off)
		}
		check()
		hourly(200)
		check()
		end := time.Now()
		w.restart(true)
		hourly(5)
		check()
		want(end.Add(time.Second), false, false, off)
		want(time.Now(), false, false, off)
		set(true)
		want(time.Now(), true, true, time.Now())
	})
}

// TestManyChanges: a ramp, or a chattering contact, does not evict changes of other points, and its
// newest value is right at any time.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(map[string]device.Point{"a/level": {Kind: device.KindLevel}, "a/door": {Kind: device.KindState}})
		const holder = "did:key:z6MkhP8QaTfsCFxKFoXid9G1LUMBTyM2mDsumM5XrYUiQw4k"
		if err := h.open(newMemDisk(), Options{}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		const ms, minutes = 20, 10
		for i := range minutes * 60_000 / ms {
			h.Record(device.Reading{Point: "a/level", Value: device.Number(float64(i)), Quality: device.Good, At: time.Now(), Holder: holder})
			if i%3000 == 0 {
				h.Record(device.Reading{Point: "a/door", Value: device.Bool(i%6000 == 0), Quality: device.Good, At: time.Now()})
				if err := h.flush(false); err != nil {
					t.Fatal(err)
				}
			}
			if c, ok := h.ValueAt("a/level", time.Now()); i%97 == 0 && (!ok || c.Value.Number() != float64(i)) {
				t.Fatalf("after %d: %v, %v", i, c, ok)
			}
			time.Sleep(ms * time.Millisecond)
		}
		count := func(point string) (n int) {
			h.Changes(point, begun, time.Now(), func(device.Change) bool { n++; return true })
			return n
		}
		if n := count("a/level"); n > maxBurst+minutes*60+minutes+1 || n < minutes*60 {
			t.Errorf("%d changes of the level", n)
		}
		if n := count("a/door"); n != minutes {
			t.Errorf("%d changes of the door, want %d", n, minutes)
		}
		if n := size(h); n > 64<<10 {
			t.Errorf("%d bytes for ten minutes", n)
		}
	})
}
