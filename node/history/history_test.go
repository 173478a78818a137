package history

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"pgregory.net/rapid"
)

func number(v float64, at time.Time) device.Reading {
	return device.Reading{Point: "a/t", Value: device.Number(v), Quality: device.Good, At: at}
}

// show writes summaries with their start in minutes since from.
func show(all []device.Summary, from time.Time) (out []string) {
	for _, s := range all {
		out = append(out, fmt.Sprintf("%v: %v %v %v", s.At.Sub(from).Minutes(), s.Min, s.Mean, s.Max))
	}
	return out
}

func TestSummaries(t *testing.T) {
	type at struct {
		minutes, v float64
	}
	hour := []at{{0, 1}, {0.5, 3}, {1, 10}, {2.99, 20}, {3, 30}, {59.5, 5}}
	for _, tt := range []struct {
		name       string
		readings   []at
		from, step float64 // minutes
		want       []string
	}{
		{"nothing", nil, 0, 1, nil},
		{"one", []at{{0, 21.5}}, 0, 1, []string{"0: 21.5 21.5 21.5"}},
		{"a minute each", hour, 0, 1, []string{"0: 1 2 3", "1: 10 10 10", "2: 20 20 20", "3: 30 30 30", "59: 5 5 5"}},
		{"two minutes each", hour, 0, 2, []string{"0: 1 4.666667 10", "2: 20 25 30", "58: 5 5 5"}},
		{"all in one", hour, 0, 60, []string{"0: 1 11.5 30"}},
		{"far more than all", hour, 0, 1e6, []string{"0: 1 11.5 30"}},
		{"a step below the resolution is a minute", hour, 0, 0.1, []string{"0: 1 2 3", "1: 10 10 10", "2: 20 20 20", "3: 30 30 30", "59: 5 5 5"}},
		{"no step is a minute", hour[:2], 0, 0, []string{"0: 1 2 3"}},
		{"a negative step is a minute", hour[:2], 0, -5, []string{"0: 1 2 3"}},
		{"from the second minute", hour, 1, 2, []string{"0: 10 15 20", "2: 30 30 30", "58: 5 5 5"}},
		{"from within a minute, which counts", hour, 2.5, 60, []string{"0: 5 18.33333 30"}},
		{"from just after a minute", hour, 3, 60, []string{"0: 5 17.5 30"}},
		{"from the future", hour, 60, 60, nil},
		{"from long before", hour, -600, 600, []string{"600: 1 11.5 30"}},
		{"negative and small", []at{{0, -0.001}, {0, 0}, {0, -0.003}}, 0, 1, []string{"0: -0.003 -0.001333333 0"}},
		{"float32 is tidied", []at{{0, 0.1}, {0, 16777217}}, 0, 1, []string{"0: 0.1 8.388609e+06 1.677722e+07"}},
		{"larger than float32", []at{{0, 1e300}, {0, -1e300}}, 0, 1, []string{"0: -3.4028230000000003e+38 0 3.4028230000000003e+38"}},
		{"smaller than float32", []at{{0, 1e-300}}, 0, 1, []string{"0: 0 0 0"}},
		{"backwards is not kept", []at{{5, 1}, {4, 9}, {5, 3}}, 0, 60, []string{"0: 1 2 3"}},
		{"before the start is not kept", []at{{-5, 9}, {0, 1}}, -60, 600, []string{"0: 1 1 1"}},
		{"a day ago and now", []at{{0, 1}, {1439, 2}}, 0, 2000, []string{"0: 1 1.5 2"}},
		{"more than a day ago", []at{{0, 1}, {1, 3}, {1440, 2}}, 0, 2000, []string{"0: 2 2.5 3"}},
		{"long ago", []at{{0, 1}, {1, 3}, {9999, 2}}, 0, 20000, []string{"0: 2 2 2"}},
	} {
		h := New([]string{"a/t"})
		for _, r := range tt.readings {
			h.Record(number(r.v, h.start.Add(time.Duration(r.minutes*float64(time.Minute)))))
		}
		from := h.start.Add(time.Duration(tt.from * float64(time.Minute)))
		got := h.Summaries("a/t", from, time.Duration(tt.step*float64(time.Minute)))
		if !slices.Equal(show(got, from), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, show(got, from), tt.want)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	h := New([]string{"a/t"})
	now := time.Now()
	for _, r := range []device.Reading{
		{Point: "a/other", Value: device.Number(1), Quality: device.Good, At: now},
		{Point: "a/t", Value: device.Number(1), Quality: device.Bad, At: now},
		{Point: "a/t", Value: device.Number(1), Quality: device.Stale, At: now},
		{Point: "a/t", Value: device.Bool(true), Quality: device.Good, At: now},
		{Point: "a/t", Value: device.Text("x"), Quality: device.Good, At: now},
		{Point: "a/t", Quality: device.Good, At: now},
	} {
		h.Record(r)
	}
	for _, p := range []string{"a/t", "a/other"} {
		if got := h.Summaries(p, now.Add(-time.Hour), time.Minute); got != nil {
			t.Errorf("%s: %v", p, got)
		}
	}
	if len(h.series) != 1 {
		t.Errorf("%d series", len(h.series))
	}
}

// TestKeep: Keep keeps the series of points in the new list, and drops the others.
func TestKeep(t *testing.T) {
	h := New([]string{"a/stays", "a/goes"})
	now := time.Now()
	for _, p := range []string{"a/stays", "a/goes"} {
		r := number(1, now)
		r.Point = p
		h.Record(r)
	}
	h.Keep([]string{"a/comes", "a/stays"})
	h.Keep([]string{"a/comes", "a/stays", "a/goes"}) // listed again, with an empty series
	for p, want := range map[string]int{"a/stays": 1, "a/goes": 0, "a/comes": 0} {
		if got := h.Summaries(p, now.Add(-time.Hour), time.Minute); len(got) != want {
			t.Errorf("%s has %d steps, want %d", p, len(got), want)
		}
		r := number(2, now)
		r.Point = p
		if h.Record(r); len(h.Summaries(p, now.Add(-time.Hour), time.Minute)) != 1 {
			t.Errorf("%s is not kept", p)
		}
	}
}

// TestModel compares with a computation over the raw readings of several days.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New([]string{"a/t"})
		type raw struct {
			minute int
			v      float64
		}
		var all []raw
		at, last := h.start, 0
		for range rapid.IntRange(0, 120).Draw(t, "readings") {
			pause := rapid.OneOf(
				rapid.Int64Range(0, int64(2*time.Minute)), rapid.Int64Range(0, int64(3*time.Hour)), rapid.Int64Range(0, int64(30*time.Hour)),
			).Draw(t, "pause")
			at = at.Add(time.Duration(pause))
			v := rapid.OneOf(rapid.Float64Range(-50, 150), rapid.Float64Range(0, 1e6), rapid.Just(0.0), rapid.Float64()).Draw(t, "v")
			h.Record(number(v, at))
			last = int(at.Sub(h.start) / time.Minute)
			all = append(all, raw{last, max(-math.MaxFloat32, min(v, math.MaxFloat32))})
		}
		from := at.Add(-time.Duration(rapid.Int64Range(-int64(time.Hour), int64(30*time.Hour)).Draw(t, "back")))
		step := time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "step"))

		length := max(step, time.Minute)
		var want []device.Summary
		var counts []float64
		var scale []float64 // the largest value that went into a mean
		previous := time.Duration(-1)
		for _, r := range all {
			minute := h.start.Add(time.Duration(r.minute) * time.Minute)
			if r.minute <= last-buckets || !minute.Add(time.Minute).After(from) {
				continue
			}
			k := max(0, minute.Sub(from)) / length
			if k != previous {
				previous = k
				want = append(want, device.Summary{At: from.Add(k * length), Min: r.v, Max: r.v})
				counts, scale = append(counts, 0), append(scale, 0)
			}
			i := len(want) - 1
			want[i].Min, want[i].Max = min(want[i].Min, r.v), max(want[i].Max, r.v)
			want[i].Mean += (r.v - want[i].Mean) / (counts[i] + 1)
			counts[i]++
			scale[i] = max(scale[i], math.Abs(r.v))
		}
		got := h.Summaries("a/t", from, step)
		if len(got) != len(want) {
			t.Fatalf("%d steps, want %d:\n%v\n%v", len(got), len(want), show(got, from), show(want, from))
		}
		near := func(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(b), scale)+1e-44 }
		for i := range got {
			g, w := got[i], want[i]
			if !g.At.Equal(w.At) || g.Count != int(counts[i]) || !near(g.Min, w.Min, 0) || !near(g.Max, w.Max, 0) || !near(g.Mean, w.Mean, scale[i]) {
				t.Fatalf("step %d: %+v, want %+v", i, g, w)
			}
			for _, v := range []float64{g.Min, g.Mean, g.Max} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("step %d has NaN or Inf: %+v", i, g)
				}
			}
			if i > 0 && !g.At.After(got[i-1].At) {
				t.Fatalf("step %d does not start after step %d", i, i-1)
			}
		}
	})
}

// TestWallClock: a reading's minute and a step's place follow the monotonic clock.
func TestWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New([]string{"a/t"})
		time.Sleep(90 * time.Second)
		now := time.Now()
		h.Record(number(5, now))
		if h.series["a/t"].last != 1 {
			t.Errorf("a reading after 90 s is in minute %d", h.series["a/t"].last)
		}
		// A test cannot set the wall clock. Instead it shows that the monotonic part of a
		// time is used: without that part, a wall time of next year counts.
		if got := h.minute(now.Round(0).AddDate(1, 0, 0)); got < 365*24*60 {
			t.Errorf("a wall time alone is minute %d", got)
		}
		time.Sleep(time.Minute)
		h.Record(number(7, time.Now()))
		got := h.Summaries("a/t", time.Now().Add(-10*time.Minute), time.Hour)
		if len(got) != 1 || got[0].Min != 5 || got[0].Max != 7 {
			t.Errorf("%v", got)
		}
	})
}

// TestMemory: a week of readings takes as much memory as a day, which is at most the size in
// History's comment.
func TestMemory(t *testing.T) {
	h := New([]string{"a/t"})
	for i := range 7 * 24 * 60 * 2 {
		h.Record(number(float64(i), h.start.Add(time.Duration(i)*30*time.Second)))
	}
	s := h.series["a/t"]
	if len(s.ring) != buckets {
		t.Errorf("%d minutes are kept, want %d", len(s.ring), buckets)
	}
	const each = 24 // bytes of a bucket on 64 bits
	if runtime.GOARCH == "amd64" && cap(s.ring)*each > 34<<10 {
		t.Errorf("a series takes %d bytes", cap(s.ring)*each)
	}
	from := h.start.Add(7*24*time.Hour - length)
	got := h.Summaries("a/t", from, length)
	if first := 6.0 * 24 * 60 * 2; len(got) != 1 || got[0].Min != first || got[0].Max != first+2*24*60-1 {
		t.Errorf("%v", show(got, from))
	}
}
