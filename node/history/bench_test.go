package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"agentsite/device"
)

// filled returns a history of points that were read in an interval for a time, and its end.
func filled(b testing.TB, d disk, points int, every, long time.Duration) (*History, time.Time) {
	b.Helper()
	kinds := make(map[string]device.Point)
	var names []string
	for i := range points {
		names = append(names, fmt.Sprintf("device%d/value", i))
		kinds[names[i]] = device.Point{Kind: device.KindMeasurement}
	}
	h := New(kinds)
	if err := h.open(d, Options{}); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	level := make([]float64, points)
	flushed := time.Duration(0)
	for at := time.Duration(0); at < long; at += every {
		for i, name := range names {
			level[i] += rng.NormFloat64() * 0.01
			v := math.Round((20+level[i]+rng.NormFloat64()*0.03)*100) / 100
			h.Record(device.Reading{Point: name, Value: device.Number(v), Quality: device.Good, At: h.start.Add(at + time.Duration(rng.IntN(5))*time.Millisecond)})
		}
		if at-flushed >= time.Minute {
			flushed = at
			if err := h.flush(false); err != nil {
				b.Fatal(err)
			}
		}
	}
	return h, h.start.Add(long)
}

// unsynced is a folder that does not wait for the disk.
type unsynced struct{ folder }

func (u unsynced) Open(name string, flag int) (file, error) {
	f, err := u.folder.Open(name, flag)
	return unsyncedFile{f}, err
}

func (u unsynced) Sync() error { return nil }

type unsyncedFile struct{ file }

func (unsyncedFile) Sync() error { return nil }

func size(h *History) (n int64) {
	for i := range h.tiers {
		n += h.tiers[i].size()
	}
	return n
}

func BenchmarkRecord(b *testing.B) {
	h := New(oneMeasurement)
	if err := h.open(newMemDisk(), Options{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		h.Record(number(float64(i%100)/10, h.start.Add(time.Duration(i)*time.Second)))
		if i++; i%60 == 0 {
			b.StopTimer()
			h.flush(false)
			b.StartTimer()
		}
	}
}

// BenchmarkMonth is a chart of a month of one point, on a real disk.
func BenchmarkMonth(b *testing.B) {
	h, end := filled(b, unsynced{folder(b.TempDir())}, 6, time.Minute, 31*day)
	for name, q := range map[string]Query{
		"month": {Address: "device1/value", From: end.Add(-30 * day), To: end, Steps: 300},
		"2.4h":  {Address: "device1/value", From: end.Add(-30 * day), To: end, Step: 144 * time.Minute},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all, err := h.Query(q)
				if err != nil || len(all) < 150 {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}

// BenchmarkDay is a chart of a day of six points, in steps of minutes and in short ones.
func BenchmarkDay(b *testing.B) {
	h, end := filled(b, unsynced{folder(b.TempDir())}, 6, 10*time.Second, 3*day)
	for _, step := range []time.Duration{5 * time.Minute, time.Minute, 30 * time.Second} {
		b.Run(step.String(), func(b *testing.B) {
			for b.Loop() {
				for i := range 6 {
					all, err := h.Query(Query{Address: fmt.Sprintf("device%d/value", i), From: end.Add(-day), To: end, Step: step})
					if err != nil || len(all) < 280 {
						b.Fatal(len(all), err)
					}
				}
			}
		})
	}
}

// BenchmarkOpen measures the time that a history adds to a start.
func BenchmarkOpen(b *testing.B) {
	path := b.TempDir()
	filled(b, unsynced{folder(path)}, 30, 10*time.Second, 8*day)
	for b.Loop() {
		h := New(nil)
		if err := h.Open(path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSize: ten samples a second for a day take at most 3 MB, and the memory at most 3 MB.
func TestSize(t *testing.T) {
	d := unsynced{folder(t.TempDir())}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h, _ := filled(t, d, 10, time.Second, day)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := size(h); n > 3e6 {
		t.Errorf("%d bytes", n)
	} else {
		t.Logf("%d bytes a day, %d bytes of memory", n, int64(after.HeapAlloc)-int64(before.HeapAlloc))
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 3<<20 {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
	runtime.KeepAlive(h)
}

// TestYear: 30 points at 10 s for a year fit into 64 MB, with raw readings, minutes and hours
// for as long as they are kept.
func TestYear(t *testing.T) {
	long := time.Duration(workload(10, 365)) * day
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := unsynced{folder(t.TempDir())}
	h, end := filled(t, d, 30, 10*time.Second, long)
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes: raw %d, minutes %d, hours %d; %d bytes of memory", size(h), h.tiers[raw].size(), h.tiers[minutes].size(), h.tiers[hours].size(), grown)
	if grown > 3<<20 {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
	if long == 365*day && (size(h) > 64<<20 || size(h) < 10<<20) {
		t.Errorf("a year takes %d bytes", size(h))
	}
	for _, tt := range []struct {
		back, step time.Duration
	}{{7 * day, 10 * time.Second}, {90 * day, time.Minute}, {365 * day, time.Hour}} {
		from := end.Add(-min(tt.back, long))
		all, err := h.Query(Query{Address: "device7/value", From: from, To: from.Add(20 * tt.step), Step: tt.step})
		if err != nil || len(all) < 20 {
			t.Errorf("%v ago there are %d steps of %v, %v", tt.back, len(all), tt.step, err)
		}
	}
}
