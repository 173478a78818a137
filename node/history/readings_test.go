package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

var someOfEach = map[string]device.Point{"a/t": {Kind: device.KindMeasurement, Unit: "Cel"}, "a/door": {Kind: device.KindState}, "a/button": {Kind: device.KindEvent}}

// storedSince writes what Readings yields, in seconds since from.
func storedSince(h *History, from, to time.Time, points ...string) string {
	var all []string
	h.Readings(points, from, to, func(point int, at time.Time, v device.Value, every time.Duration) bool {
		text := fmt.Sprintf("%v %s %v", at.Sub(from).Seconds(), points[point], v)
		if every > 0 {
			text += " each " + every.String()
		}
		all = append(all, text)
		return true
	})
	return strings.Join(all, ", ")
}

// TestReadings: of all kinds, over a restart, from the disk and from memory.
func TestReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := tempDisk(t)
		start := time.Now()
		h := opened(t, disk, someOfEach)
		put := func(point string, v device.Value) {
			q := device.Good
			if v.IsZero() {
				q = device.Bad
			}
			h.Record(device.Reading{Point: point, Value: v, Quality: q, At: time.Now()})
		}
		put("a/door", device.Bool(true))
		put("a/t", device.Number(1))
		time.Sleep(10 * time.Second)
		put("a/t", device.Number(1))
		put("a/button", device.Text("press"))
		time.Sleep(10 * time.Second)
		put("a/t", device.Value{})
		want := "0 a/t 1, 0 a/door on, 10 a/t 1, 10 a/button press, 20 a/t -"
		if got := storedSince(h, start, time.Now().Add(time.Second), "a/t", "a/door", "a/button"); got != want {
			t.Errorf("in memory: %q, want %q", got, want)
		}
		if err := h.flush(true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		h = opened(t, disk, someOfEach)
		time.Sleep(10 * time.Second)
		put("a/door", device.Bool(true))
		put("a/t", device.Number(2))
		want += ", 20 a/door -, 70 a/t 2, 70 a/door on"
		if got := storedSince(h, start, time.Now().Add(time.Second), "a/t", "a/door", "a/button"); !sameWords(got, want) {
			t.Errorf("over a restart: %q, want %q", got, want)
		}
		if got, want := storedSince(h, start.Add(5*time.Second), start.Add(20*time.Second), "a/door", "a/t"), "0 a/door on, 5 a/t 1"; got != want {
			t.Errorf("a part: %q, want %q", got, want)
		}
		calls := 0
		h.Readings([]string{"a/t", "a/door"}, start, time.Now(), func(int, time.Time, device.Value, time.Duration) bool { calls++; return calls < 3 })
		if calls != 3 {
			t.Errorf("%d calls of a yield that ends with the third", calls)
		}
	})
}

// sameWords compares lists whose entries of one moment may be in any order.
func sameWords(a, b string) bool {
	x, y := strings.Split(a, ", "), strings.Split(b, ", ")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// TestReadingsOfMinutes: where raw readings are gone, the last of each minute; and what was
// imported, in the order of time.
func TestReadingsOfMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := tempDisk(t), rand.New(rand.NewPCG(1, 1))
		h := New(oneMeasurement)
		if err := h.open(d, Options{Raw: 2 * 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		start := time.Now()
		minutes := make(map[int64]float64)
		for range 10 * 24 * 60 {
			for range 3 {
				v := float64(r.IntN(100))
				h.Record(number(v, time.Now()))
				minutes[time.Now().Unix()/60] = v
				time.Sleep(20 * time.Second)
			}
			if r.IntN(10) == 0 {
				if err := h.flush(false); err != nil {
					t.Fatal(err)
				}
			}
		}
		end := time.Now()
		for _, hour := range []int{30, 20, 25} { // before it
			at := start.Add(-time.Duration(hour) * time.Hour)
			v := float64(hour)
			if _, err := h.Import("a/t", []device.Summary{{At: at, Min: v, Mean: v, Max: v, Last: v, Good: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		var last time.Time
		var first []float64
		raws, summaries := 0, 0
		h.Readings([]string{"a/t"}, start.Add(-40*time.Hour), end, func(point int, at time.Time, v device.Value, every time.Duration) bool {
			if at.Before(last) {
				t.Fatalf("%v after %v", at, last)
			}
			last = at
			switch {
			case at.Before(start):
				first = append(first, v.Number())
			case every == 0:
				raws++
			default:
				summaries++
				if want := minutes[at.Unix()/60]; v.Number() != want {
					t.Fatalf("%v at %v, want %v", v, at, want)
				}
			}
			return true
		})
		if !slices.Equal(first, []float64{30, 25, 20}) {
			t.Errorf("imported: %v", first)
		}
		if raws < 24*180 || summaries < 6*24*60 || raws/3+summaries < 10*24*60-3 || raws/3+summaries > 10*24*60+3 {
			t.Errorf("%d raw readings and %d minutes of 10 days", raws, summaries)
		}
	})
}

// TestReadingsBesideWrites: reading and recording do not disturb each other.
func TestReadingsBesideWrites(t *testing.T) {
	h := opened(t, tempDisk(t), someOfEach)
	begin := time.Now()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				last := 0.0
				h.Readings([]string{"a/t", "a/door"}, begin, begin.Add(time.Hour), func(point int, at time.Time, v device.Value, every time.Duration) bool {
					if point == 0 && v.Number() < last {
						t.Error("an older reading came later")
					}
					if point == 0 {
						last = v.Number()
					}
					return true
				})
			}
		})
	}
	for i := range 3000 {
		h.Record(device.Reading{Point: "a/t", Value: device.Number(float64(i)), Quality: device.Good, At: time.Now()})
		if i%100 == 0 {
			h.Record(device.Reading{Point: "a/door", Value: device.Bool(i%200 == 0), Quality: device.Good, At: time.Now()})
			if err := h.flush(false); err != nil {
				t.Error(err)
			}
		}
	}
	all.Wait()
}
