package history

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// imports is a history that is imported into, and what it should have.
type imports struct {
	t    *testing.T
	rng  *rand.Rand
	disk *memDisk
	o    Options
	h    *History
	ref  []read1
	has  map[int64]bool // hours
}

func (w *imports) open() {
	w.h = New(oneMeasurement)
	if err := w.h.open(w.disk, w.o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *imports) record() {
	time.Sleep(time.Duration(w.rng.IntN(30*60)) * time.Minute) // a gap to import into
	for range 1 + w.rng.IntN(50) {
		time.Sleep(time.Duration(1+w.rng.IntN(600)) * time.Second)
		v := math.Round(w.rng.NormFloat64()*1000) / 10
		w.h.Record(number(v, time.Now()))
		w.ref = append(w.ref, read1{time.Now().UnixMilli(), v, true})
		w.has[floor(time.Now().UnixMilli(), msHour)] = true
	}
	if err := w.h.flush(w.rng.IntN(2) == 0); err != nil {
		w.t.Fatal(err)
	}
}

// readings returns some of the last days until now, in the order of time.
func (w *imports) readings(days int) (all []device.Summary) {
	times := make(map[int64]bool)
	if w.rng.IntN(2) == 0 {
		days = 5
	}
	from, long := time.Now().Add(-time.Duration(w.rng.IntN(days*24))*time.Hour), 1+w.rng.IntN(3*24*60)
	for range w.rng.IntN(300) {
		times[from.Add(time.Duration(w.rng.IntN(long))*time.Minute+time.Duration(w.rng.IntN(60_000))*time.Millisecond).UnixMilli()] = true
	}
	for _, t := range slices.Sorted(maps.Keys(times)) {
		if t > time.Now().UnixMilli() {
			break
		}
		v := math.Round(w.rng.NormFloat64()*1000) / 10
		all = append(all, device.Summary{At: time.UnixMilli(t), Min: v, Mean: v, Max: v, Last: v, Good: 1})
	}
	return all
}

// take imports readings and checks how many were taken.
func (w *imports) take(all []device.Summary) {
	var want []read1
	for _, r := range all {
		if t := r.At.UnixMilli(); !w.has[floor(t, msHour)] {
			want = append(want, read1{t, r.Mean, true})
		}
	}
	if taken, err := w.h.Import("a/t", all); err != nil || taken != len(want) {
		w.t.Fatalf("%d readings taken of %d, want %d, %v", taken, len(all), len(want), err)
	}
	for _, r := range want {
		w.has[floor(r.wall, msHour)] = true
	}
	w.ref = append(w.ref, want...)
}

func (w *imports) check() {
	slices.SortStableFunc(w.ref, func(a, b read1) int { return cmp.Compare(a.wall, b.wall) })
	ref := reference{points: map[string][]read1{"a/t": w.ref}}
	step := []time.Duration{time.Hour, 3 * time.Hour, 24 * time.Hour}[w.rng.IntN(3)]
	from := time.Now().Add(-time.Duration(1+w.rng.IntN(100*24)) * time.Hour)
	if w.rng.IntN(2) == 0 { // minutes are kept of these
		from, step = time.Now().Add(-w.o.Minutes+time.Hour), time.Duration(1+w.rng.IntN(3))*time.Minute
	}
	q := Query{Address: "a/t", From: from, To: from.Add(500 * step), Step: step}
	bounds, err := q.bounds()
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.h.Query(q)
	if err == nil {
		err = equalSteps(got, ref.steps("a/t", bounds))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestImport: readings imported between a site's own, in any order and repeatedly, with restarts
// and losses of power, are found beside those, and none twice.
func TestImport(t *testing.T) {
	for seed := range workload(500, 20_000) {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			})
			w := &imports{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 3)), disk: newMemDisk(), has: map[int64]bool{}, o: Options{Minutes: 20 * day}}
			w.open()
			var before []device.Summary
			for range 1 + w.rng.IntN(12) {
				switch w.rng.IntN(6) {
				case 0, 1:
					w.record()
				case 2:
					before = w.readings(100)
					w.take(before)
				case 3: // what overlaps with that, or is the same
					w.take(before)
				case 4:
					if err := w.h.flush(true); err != nil {
						t.Fatal(err)
					}
					w.open()
				case 5:
					all := w.readings(100)
					fresh := slices.ContainsFunc(all, func(r device.Summary) bool { return !w.has[floor(r.At.UnixMilli(), msHour)] })
					if err := w.h.flush(true); err != nil {
						t.Fatal(err)
					}
					w.disk.left = 1 + w.rng.IntN(3)
					taken, err := w.h.Import("a/t", all)
					if err == nil && taken > 0 && !fresh || err != nil && taken > 0 {
						t.Fatal(taken, err)
					}
					lost := err != nil
					w.disk = w.disk.crash(w.rng)
					if w.open(); lost { // all of it is there or nothing
						n := 0
						v := w.h.view("a/t")
						v.readImported(0, math.MaxInt64, func(b bucket) {
							if i := slices.IndexFunc(all, func(r device.Summary) bool { return r.At.UnixMilli() == b.t }); i >= 0 && !w.has[floor(b.t, msHour)] {
								n++
							}
						})
						if n > 0 {
							lost = false
						}
					}
					if !lost {
						for _, r := range all {
							if t := r.At.UnixMilli(); !w.has[floor(t, msHour)] {
								w.ref = append(w.ref, read1{t, r.Mean, true})
							}
						}
						for _, r := range all {
							w.has[floor(r.At.UnixMilli(), msHour)] = true
						}
					}
					w.take(all)
				}
				w.check()
			}
		})
	}
}

// TestImportRefuses: an import with an invalid reading is refused as a whole, and a disk that fails
// loses nothing.
func TestImportRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		one := func(at time.Time, min, mean, max, last float64) device.Summary {
			return device.Summary{At: at, Min: min, Mean: mean, Max: max, Last: last, Good: 1}
		}
		good := one(now.Add(-2*time.Hour), 1, 1, 1, 1)
		d := newMemDisk()
		h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}, "b/s": {Kind: device.KindState}, "c/h": {Kind: device.KindMeasurement, Range: device.Range{Max: 100}}})
		if _, err := h.Import("a/t", []device.Summary{good}); err == nil || !strings.Contains(err.Error(), "in memory") {
			t.Error(err)
		}
		if err := h.open(d, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			point, want string
			r           device.Summary
		}{
			{"b/s", "no measurement", good},
			{"a/x", "no measurement", good},
			{"c/h", "range", one(now, -9999, -9999, -9999, -9999)},
			{"c/h", "range", one(now, 50, 100, 140, 50)},
			{"a/t", "future", one(now.Add(time.Second), 1, 1, 1, 1)},
			{"a/t", "order", one(now.Add(-3*time.Hour), 1, 1, 1, 1)},
			{"a/t", "1970", one(time.UnixMilli(-1), 1, 1, 1, 1)},
			{"a/t", "no number", one(now, 1, math.NaN(), 1, 1)},
			{"a/t", "too large", one(now, math.Inf(-1), 1, 1, 1)},
			{"a/t", "not between", one(now, 2, 1, 2, 2)},
			{"a/t", "not between", one(now, 1, 1, 2, 3)},
			{"a/t", "not of 0", device.Summary{At: now}},
			{"a/t", "not of 100001", device.Summary{At: now, Good: 100_001}},
			{"a/t", "too large", one(now, 1e308, 1e308, 1e308, 1e308)},
		} {
			if n, err := h.Import(tt.point, []device.Summary{good, tt.r}); n != 0 || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: %d, %v, want one with %q", tt.r, n, err, tt.want)
			}
		}
		if got := lastHour(h, "a/t"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		d.fail = errors.New("no space left on device")
		if n, err := h.Import("a/t", []device.Summary{good}); n != 0 || err == nil {
			t.Error(n, err)
		}
		d.fail = nil
		if n, err := h.WouldImport("a/t", []device.Summary{good}); n != 1 || err != nil || len(lastHour(h, "a/t")) != 0 {
			t.Error("without importing:", n, err)
		}
		if n, err := h.Import("a/t", []device.Summary{good}); n != 1 || err != nil {
			t.Error(n, err)
		}
		if n, err := h.Import("a/t", []device.Summary{good}); n != 0 || err != nil {
			t.Error("again:", n, err)
		}
		time.Sleep(11 * 365 * day)
		h.expire(time.Now(), true) // the newest file stays
		if n, err := h.Import("a/t", []device.Summary{one(time.Now(), 1, 1, 1, 1)}); n != 1 || err != nil {
			t.Error(n, err)
		}
		if n := len(h.tiers[imported].segments); n != 1 {
			t.Errorf("%d files with what is older than ten years", n)
		}
	})
}

// TestImportUnknownClock: while nobody knows to which hours the site's own readings belong,
// nothing is imported beside them.
func TestImportUnknownClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := false
		h := New(oneMeasurement)
		if err := h.open(newMemDisk(), Options{Now: func() (time.Time, bool) { return time.Now(), known }}); err != nil {
			t.Fatal(err)
		}
		for _, all := range [][]device.Summary{nil, {ago(time.Hour, 1)}} {
			if n, err := h.Import("a/t", all); n != 0 || err == nil || !strings.Contains(err.Error(), "clock") {
				t.Error(n, err)
			}
		}
		known = true
		if n, err := h.Import("a/t", []device.Summary{ago(time.Hour, 1)}); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestImportedMemory: a query of many imported minutes does not have them in memory at once.
func TestImportedMemory(t *testing.T) {
	h := opened(t, newMemDisk(), oneMeasurement)
	now := time.Now()
	const batches, batch = 12, 160 * 60 // minutes of whole hours
	at := now.Truncate(time.Hour).Add(-85 * day)
	for range batches {
		var all []device.Summary
		for range batch {
			all = append(all, device.Summary{At: at, Min: 1, Mean: 1, Max: 1, Last: 1, Good: 1})
			at = at.Add(time.Minute)
		}
		if n, err := h.Import("a/t", all); n != batch || err != nil {
			t.Fatal(n, err)
		}
	}
	query := func() {
		if all, err := h.Query(Query{Address: "a/t", From: now.Add(-90 * day), To: now, Step: 3650 * day}); err != nil || len(all) != 1 || all[0].Count != batches*batch {
			t.Fatal(all, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	query()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 {
		t.Errorf("a query allocates %d bytes", took)
	}
}
