package history

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// beside runs a query until work is done in another goroutine.
func beside(work, query func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	for {
		select {
		case <-done:
			return
		default:
			query()
		}
	}
}

// TestImportBesideKeep: for the race detector.
func TestImportBesideKeep(t *testing.T) {
	h := opened(t, tempDisk(t), oneMeasurement)
	all := make([]device.Summary, maxReadings)
	for i := range all {
		all[i] = ago(2*time.Hour, 1)
	}
	beside(func() {
		for range 20 {
			h.Import("a/t", all)
		}
	}, func() { h.Keep(oneMeasurement) })
}

// TestQueryBesideFlush: for the race detector.
func TestQueryBesideFlush(t *testing.T) {
	h := opened(t, tempDisk(t), oneMeasurement)
	beside(func() {
		for i := range 20 {
			h.Record(number(float64(i), time.Now()))
			h.flush(false)
		}
	}, func() { lastHour(h, "a/t") })
}

// TestValueBesideFlush: for the race detector.
func TestValueBesideFlush(t *testing.T) {
	h := opened(t, tempDisk(t), map[string]device.Point{"b/s": {Kind: device.KindState}})
	beside(func() {
		for i := range 20 {
			h.Record(device.Reading{Point: "b/s", Value: device.Bool(i%2 == 0), Quality: device.Good, At: time.Now()})
			h.flush(true)
		}
	}, func() { h.ValueAt("b/s", time.Now().Add(time.Second)) })
}

// TestDiskHangs: a disk that hangs blocks only writers.
func TestDiskHangs(t *testing.T) {
	for _, by := range []string{"flush", "import"} {
		w := &wrapDisk{disk: tempDisk(t)}
		h := opened(t, w, oneMeasurement)
		h.Record(number(1, time.Now()))
		h.flush(false)
		hang, entered := make(chan struct{}), make(chan struct{}, 10)
		w.sync = func() { entered <- struct{}{}; <-hang }
		done := make(chan struct{})
		go func() {
			defer close(done)
			if by == "flush" {
				h.Record(number(2, time.Now()))
				h.flush(true)
			} else {
				h.Import("a/t", []device.Summary{ago(3*time.Hour, 1)})
			}
		}()
		<-entered
		all := make(chan struct{})
		go func() {
			defer close(all)
			for i := range 40_000 {
				h.Record(number(float64(i), time.Now()))
			}
			h.Keep(nil)
			h.Keep(oneMeasurement)
			lastHour(h, "a/t")
			values(h, "a/t")
			h.ValueAt("a/t", time.Now())
			h.Changes("a/t", longAgo, farOff, func(device.Change) bool { return true })
			setClock(h, time.Hour)
		}()
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			t.Error(by, "something blocks")
		}
		close(hang)
		<-done
		w.sync = nil
		if err := h.flush(true); err != nil {
			t.Error(err)
		}
	}
}

// TestAllAtOnce: for the race detector, and no deadlock. Each does as much as takes it about a
// second beside the others.
func TestAllAtOnce(t *testing.T) {
	points := map[string]device.Point{"a/t": {Kind: device.KindMeasurement}, "b/s": {Kind: device.KindState}}
	h := New(points)
	var ahead atomic.Int64
	h.Now = func() (time.Time, bool) { return time.Now().Add(time.Duration(ahead.Load())), true }
	path := filepath.Join(t.TempDir(), "h")
	var all sync.WaitGroup
	loop := func(n int, f func(i int)) {
		all.Go(func() {
			for i := range n {
				f(i)
			}
		})
	}
	loop(1, func(int) {
		if err := h.Open(path, Options{Bytes: 200 << 10}); err != nil {
			t.Error(err)
		}
	})
	loop(20_000, func(i int) {
		h.Record(number(float64(i), time.Now()))
		h.Record(device.Reading{Point: "b/s", Value: device.Bool(i%2 == 0), Quality: device.Good, At: time.Now()})
	})
	loop(400, func(i int) { h.flush(i%10 == 0) })
	loop(400, func(i int) {
		h.Import("a/t", []device.Summary{ago(time.Duration(4000-i%3000)*time.Hour, 1)})
	})
	loop(400, func(int) {
		lastHour(h, "a/t")
		h.Samples("a/t", time.Now().Add(-time.Second), farOff, func(time.Time, float64, bool) bool { return true })
	})
	loop(400, func(int) {
		h.ValueAt("b/s", time.Now())
		h.Changes("b/s", time.Now().Add(-time.Second), farOff, func(device.Change) bool { return true })
	})
	loop(2000, func(int) {
		h.Keep(nil)
		h.Keep(points)
	})
	loop(50, func(i int) {
		ahead.Store(int64(time.Duration(i%3) * time.Hour))
		h.mu.Lock()
		h.followClock()
		h.mu.Unlock()
	})
	all.Wait()
}

// TestKeepAndPowerCuts: points that come, go and change, with losses of power: each tier has what is sure.
func TestKeepAndPowerCuts(t *testing.T) {
	for seed := range workload(100, 5_000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 9))
			d := newMemDisk()
			units := []string{"", "Cel", "[degF]"}
			list := func(u string, k device.Kind) map[string]device.Point {
				return map[string]device.Point{"a/t": {Kind: k, Unit: u}}
			}
			sure, most := map[string]int{}, map[string]int{}
			h := opened(t, d, nil)
			for range 12 {
				pending := map[string]int{}
				if rng.IntN(2) == 0 {
					d.left = 1 + rng.IntN(60)
				}
				for range rng.IntN(40) {
					u := units[rng.IntN(3)]
					k := device.KindMeasurement
					if rng.IntN(4) == 0 {
						k = device.KindState
					}
					h.Keep(list(u, k))
					for range rng.IntN(30) {
						time.Sleep(time.Second)
						if rng.IntN(200) == 0 {
							setClock(h, time.Duration(rng.IntN(7200))*time.Second)
						}
						h.Record(number(1, time.Now()))
						if k == device.KindMeasurement {
							pending[u]++
							most[u]++
						}
					}
					if rng.IntN(5) == 0 {
						h.Keep(nil)
					}
					if h.flush(rng.IntN(8) == 0) == nil {
						for u, n := range pending {
							sure[u] += n
						}
						clear(pending)
					}
				}
				d = d.crash(rng)
				h = opened(t, d, list("", device.KindMeasurement))
				for _, u := range units {
					h.Keep(list(u, device.KindMeasurement))
					r := total(h, "a/t", raw)
					for tier := range imported {
						if got := total(h, "a/t", tier); got != r || got < sure[u] || got > most[u] {
							t.Fatalf("seed %d: %q in %s has %d, raw %d, want %d to %d", seed, u, tierNames[tier], got, r, sure[u], most[u])
						}
					}
					sure[u], most[u] = r, r
				}
			}
		})
	}
}

// TestKindChanges: a point that becomes another while changes wait loses none.
func TestKindChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		event := map[string]device.Point{"a/t": {Kind: device.KindEvent}}
		st := map[string]device.Point{"a/t": {Kind: device.KindState}}
		h := opened(t, d, event)
		h.Record(device.Reading{Point: "a/t", Value: device.Text("pressed"), Quality: device.Good, At: time.Now()})
		time.Sleep(time.Minute)
		h.Keep(st)
		if c, ok := h.ValueAt("a/t", time.Now()); ok {
			t.Errorf("unflushed: %+v", c)
		}
		h.Record(device.Reading{Point: "a/t", Value: device.Bool(true), Quality: device.Good, At: time.Now()})
		time.Sleep(time.Minute)
		if c, ok := h.ValueAt("a/t", time.Now()); !ok || c.Value != device.Bool(true) {
			t.Errorf("unflushed: %+v %v", c, ok)
		}
		h.flush(false) // and a crash
		h = opened(t, d, st)
		n := 0
		h.Changes("a/t", longAgo, farOff, func(device.Change) bool { n++; return true })
		if n != 2 {
			t.Error(n)
		}
	})
}

// setClock sets a history's clock ahead of Go's.
func setClock(h *History, ahead time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Now = func() (time.Time, bool) { return time.Now().Add(ahead), true }
	h.followClock()
}
