package history

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelError + 1) // faults are logged, and tests make many
	if path := os.Getenv(childFolder); path != "" {
		if err := recordForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// workload returns normal, more where SOAK is set, and less with -short and with the race detector:
// one goroutine repeats most of it.
func workload(normal, soak int) int {
	switch {
	case os.Getenv("SOAK") != "":
		return soak
	case testing.Short(), raceDetector:
		return max(normal/10, 1)
	}
	return normal
}

// read1 is one reading as the reference has it: at a wall time, in the order of recording.
type read1 struct {
	wall int64
	v    float64
	good bool
}

// reference holds the records of a site in plain slices.
type reference struct {
	points  map[string][]read1
	changes map[string][]change1
}

type change1 struct {
	wall int64
	c    device.Change // without a time
}

func newReference() *reference {
	return &reference{map[string][]read1{}, map[string][]change1{}}
}

// steps aggregates the readings between bounds.
func (r *reference) steps(address string, bounds []int64) (all []device.Summary) {
	for i := range len(bounds) - 1 {
		var s device.Summary
		sum := 0.0
		for _, x := range r.points[address] {
			if x.wall < bounds[i] || x.wall >= bounds[i+1] {
				continue
			}
			s.Count++
			if !x.good {
				continue
			}
			if s.Good++; s.Good == 1 {
				s.Min, s.Max = x.v, x.v
			}
			s.Min, s.Max, s.Last = min(s.Min, x.v), max(s.Max, x.v), x.v
			sum += x.v
		}
		if s.Count > 0 {
			if s.Good > 0 {
				s.Mean = sum / float64(s.Good)
			}
			s.At, s.End = time.UnixMilli(bounds[i]), time.UnixMilli(bounds[i+1])
			all = append(all, s)
		}
	}
	return all
}

func equalSteps(got, want []device.Summary) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d steps, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		near := math.Abs(g.Mean-w.Mean) <= 1e-9*max(math.Abs(w.Min), math.Abs(w.Max))+1e-300
		g.Mean = w.Mean
		if g.At.UnixMilli() != w.At.UnixMilli() || g.End.UnixMilli() != w.End.UnixMilli() || !near {
			return fmt.Errorf("step %d is %+v, want %+v", i, g, w)
		}
		if g.At, g.End = w.At, w.End; g != w {
			return fmt.Errorf("step %d is %+v, want %+v", i, g, w)
		}
	}
	return nil
}

// world is a site whose clock can be set, in a synctest bubble.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	disk  *memDisk
	kinds map[string]device.Point
	skew  time.Duration // of the wall clock
	known bool
	h     *History
	ref   *reference
	marks map[string]int // how many readings and changes are from before this epoch, by point
	level map[string]float64
	digit float64
	o     Options
	// The wall time at which this epoch began, later than that at which the one before ended.
	began, ended int64
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), disk: newMemDisk(), known: true, ref: newReference(),
		kinds: map[string]device.Point{"a/t": {Kind: device.KindMeasurement}, "a/h": {Kind: device.KindMeasurement}, "b/open": {Kind: device.KindState}, "b/button": {Kind: device.KindEvent}, "b/relay": {Kind: device.KindSwitch}},
		level: map[string]float64{}, digit: math.Pow10(1 + int(seed%4))}
	w.o = Options{Now: func() (time.Time, bool) { return time.Now().Add(w.skew), w.known }}
	w.open()
	return w
}

func (w *world) open() {
	if w.h != nil {
		w.ended = w.wall()
	}
	w.h = New(w.kinds)
	if err := w.h.open(w.disk, w.o); err != nil {
		w.t.Fatal(err)
	}
	w.began = w.wall()
	w.marks = map[string]int{}
	for a := range w.kinds {
		w.marks[a] = len(w.ref.points[a]) + len(w.ref.changes[a])
	}
}

// wall returns the wall time as the history has it: of a clock that is not known it is the
// assumed one.
func (w *world) wall() int64 {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	return w.h.now() + w.h.collector.wall
}

// step sets the clock, and moves the readings of this epoch in the reference with it.
func (w *world) step(by time.Duration) {
	w.skew += by
	before := w.wall()
	w.h.mu.Lock()
	w.h.followClock()
	w.h.mu.Unlock()
	moved := w.wall() - before
	w.began += moved
	for a, mark := range w.marks {
		for i := range w.ref.points[a] {
			if i >= mark {
				w.ref.points[a][i].wall += moved
			}
		}
		for i := range w.ref.changes[a] {
			if i >= mark {
				w.ref.changes[a][i].wall += moved
			}
		}
	}
}

// reading records one reading of each point.
func (w *world) reading() {
	now := time.Now()
	for _, a := range []string{"a/t", "a/h"} {
		r := device.Reading{Point: a, Quality: device.Good, At: now}
		w.level[a] += w.rng.NormFloat64()
		v := w.level[a]
		switch w.rng.IntN(40) {
		case 0:
			r.Quality = device.Bad
		case 1:
			r.Quality = device.Stale
		case 2:
			v = math.Float64frombits(w.rng.Uint64())
			if math.IsNaN(v) || math.Abs(v) > 1e300 {
				v = 1e300
			}
		default:
			v = math.Round(v*w.digit) / w.digit
		}
		r.Value = device.Number(v)
		w.h.Record(r)
		good := r.Quality == device.Good
		if !good {
			v = 0
		}
		w.ref.points[a] = append(w.ref.points[a], read1{w.wall(), v, good})
	}
	change := func(a string, c device.Change, record func(r device.Reading)) {
		r := device.Reading{Point: a, Value: c.Value, Quality: device.Good, At: now}
		if c.Value.IsZero() {
			r.Quality = device.Bad
		}
		record(r)
		all := w.ref.changes[a]
		if w.kinds[a].Kind != device.KindEvent && len(all) > w.marks[a] {
			if all[len(all)-1].c == c {
				return
			}
		}
		w.ref.changes[a] = append(all, change1{w.wall(), c})
	}
	if w.rng.IntN(3) == 0 {
		c := device.Change{Value: device.Text([]string{"open", "closed", "moving"}[w.rng.IntN(3)])}
		if w.rng.IntN(10) == 0 {
			c = device.Change{}
		}
		change("b/open", c, w.h.Record)
	}
	if w.rng.IntN(10) == 0 {
		change("b/button", device.Change{Value: device.Bool(true)}, w.h.Record)
	}
	if w.rng.IntN(5) == 0 {
		c := device.Change{Value: device.Bool(w.rng.IntN(2) == 0), Holder: []string{"", "rule:frost", "did:key:zAnn"}[w.rng.IntN(3)], Cause: []string{"", "its lease ended"}[w.rng.IntN(2)]}
		change("b/relay", c, func(r device.Reading) {
			r.Holder, r.Cause = c.Holder, c.Cause
			w.h.Record(r)
		})
	}
}

// restart ends the site, with all that it has, or as a kill does between two writes.
func (w *world) restart(clean bool) {
	if err := w.h.flush(clean); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Duration(w.rng.IntN(1000)) * time.Minute / 10)
	w.open()
}

// check asks for all readings, a random query of each tier, and the changes.
func (w *world) check() {
	w.t.Helper()
	far := []time.Time{time.Now().AddDate(-1000, 0, 0), time.Now().AddDate(1000, 0, 0)}
	for _, a := range []string{"a/t", "a/h"} {
		var got []read1
		w.h.Samples(a, far[0], far[1], func(at time.Time, v float64, good bool) bool {
			got = append(got, read1{at.UnixMilli(), v, good})
			return true
		})
		if want := w.ref.points[a]; !slices.Equal(got, want) {
			w.t.Fatalf("%s has %d readings, want %d", a, len(got), len(want))
		}
		if len(got) == 0 {
			continue
		}
		for range 3 {
			around := got[w.rng.IntN(len(got))].wall
			steps := int64(1 + w.rng.IntN(40))
			length := []int64{1, 8, 1000, 10_000, msMinute, 5 * msMinute, msHour, 6 * msHour, 24 * msHour}[w.rng.IntN(9)]
			from := around - w.rng.Int64N(steps*length)
			q := Query{Address: a, From: time.UnixMilli(from), To: time.UnixMilli(from + steps*length), Step: time.Duration(length) * time.Millisecond}
			all, err := w.h.Query(q)
			if err != nil {
				w.t.Fatalf("%+v: %v", q, err)
			}
			begin := floor(from, length)
			var bounds []int64
			for at := begin; ; at += length {
				bounds = append(bounds, at)
				if at >= from+steps*length {
					break
				}
			}
			if err := equalSteps(all, w.ref.steps(a, bounds)); err != nil {
				w.t.Fatalf("%s in steps of %v: %v", a, q.Step, err)
			}
		}
	}
	for _, a := range []string{"b/open", "b/button", "b/relay"} {
		var got []change1
		w.h.Changes(a, far[0], far[1], func(c device.Change) bool {
			wall := c.At.UnixMilli()
			c.At = time.Time{}
			got = append(got, change1{wall, c})
			return true
		})
		if want := w.ref.changes[a]; !slices.Equal(got, want) {
			w.t.Fatalf("%s has %d changes, want %d:\n%v\n%v", a, len(got), len(want), got, want)
		}
	}
}

// TestModel compares random series, with gaps, faults, restarts and clock steps, with plain
// slices. The clock is stepped by whole hours, because minutes and hours that were aggregated
// before stay as they are.
func TestModel(t *testing.T) {
	for seed := range workload(500, 100_000) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, uint64(seed))
			for range w.rng.IntN(60) {
				switch w.rng.IntN(12) {
				case 0:
					w.restart(w.rng.IntN(2) == 0)
				case 1:
					by := time.Duration(w.rng.IntN(200_000)-100_000) * time.Hour // ± 11 years
					if w.began+by.Milliseconds() <= w.ended {                    // TestClockAhead has that
						by = -by
					}
					w.step(by)
				case 2:
					time.Sleep(time.Duration(w.rng.IntN(6*msHour)) * time.Millisecond) // a gap
				default:
					every := []time.Duration{time.Second, 10 * time.Second, 61 * time.Second}[w.rng.IntN(3)]
					for range w.rng.IntN(30) {
						w.reading()
						time.Sleep(every - time.Duration(w.rng.IntN(3))*time.Millisecond)
					}
				}
				if w.rng.IntN(2) == 0 {
					if err := w.h.flush(false); err != nil {
						t.Fatal(err)
					}
				}
				if w.rng.IntN(10) == 0 {
					w.check()
				}
			}
			w.check()
		})
	}
}

// TestRun: Run writes once a minute at most, and everything when it ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.h.Run(ctx) }()
		for range 600 {
			w.reading()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if w.disk.writes > 10*2+3+2 { // a write and a sync a minute, two names, a block of minutes
			t.Errorf("%d operations in ten minutes", w.disk.writes)
		}
		before := w.disk.writes
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		quiet := w.disk.writes
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if w.disk.writes != quiet || quiet == before && w.h.collected > 0 {
			t.Errorf("%d operations while nothing happens", w.disk.writes-quiet)
		}
		w.reading()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.open()
		w.check()
	})
}
