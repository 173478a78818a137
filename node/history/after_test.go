package history

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestAfter: the records after a mark are those that came after it, whether they are on the disk or not, of every kind,
// and two of one millisecond are told apart.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points := map[string]device.Point{
			"a/t": {Kind: device.KindMeasurement, Unit: "Cel"}, "b/e": {Kind: device.KindEvent}, "b/s": {Kind: device.KindState},
		}
		names := []string{"a/t", "b/e", "b/s"}
		dir := t.TempDir()
		h := New(points)
		if err := h.Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		record := func(point string, v device.Value) {
			h.Record(device.Reading{Point: point, Value: v, Quality: device.Good, At: time.Now()})
		}
		after := func(marks []Mark) (all []string, whole bool) {
			whole = h.After(names, marks, func(e Entry) bool {
				all = append(all, fmt.Sprint(names[e.Point], " ", e.Value))
				marks[e.Point] = e.Mark
				return true
			})
			return all, whole
		}
		time.Sleep(time.Second)
		record("b/e", device.Text("press"))
		begin, _ := h.Marks(names)
		marks := slices.Clone(begin)
		record("b/e", device.Text("press")) // in the same millisecond
		record("a/t", device.Number(1))
		time.Sleep(time.Second)
		record("b/s", device.Bool(true))
		record("a/t", device.Number(2))
		want := []string{"b/e press", "a/t 1", "b/s on", "a/t 2"}
		same := func(what string, got []string, whole, all bool) {
			t.Helper()
			slices.Sort(got)
			wanted := slices.Sorted(slices.Values(want))
			if !slices.Equal(got, wanted) || whole != all {
				t.Errorf("%s: %q, all %v; want %q", what, got, whole, wanted)
			}
		}
		got, whole := after(slices.Clone(begin))
		same("in memory", got, whole, true)
		if err := h.flush(false); err != nil {
			t.Fatal(err)
		}
		got, whole = after(marks)
		same("on the disk", got, whole, true)
		if got, whole = after(marks); got != nil || !whole {
			t.Errorf("again: %q, %v", got, whole)
		}
		if err := h.flush(true); err != nil {
			t.Fatal(err)
		}
		h = New(points)
		if err := h.Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		got, whole = after(slices.Clone(begin))
		same("after a restart", got, whole, false)
		record("b/e", device.Text("press"))
		if got, whole = after(marks); !slices.Equal(got, []string{"b/e press"}) || whole {
			t.Errorf("in the new run: %q, %v", got, whole)
		}
	})
}

// TestAfterTooMany: that changes were left out is known to those who have not passed them.
func TestAfterTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"b/e"}
		h := New(map[string]device.Point{"b/e": {Kind: device.KindEvent}})
		time.Sleep(time.Minute)
		marks, _ := h.Marks(names)
		for range 200 {
			time.Sleep(time.Millisecond)
			h.Record(device.Reading{Point: "b/e", Value: device.Text("press"), Quality: device.Good, At: time.Now()})
		}
		n := 0
		take := func(e Entry) bool { n++; marks[0] = e.Mark; return true }
		if h.After(names, marks, take) || n != maxBurst {
			t.Errorf("%d, and none is said to be missing", n)
		}
		if !h.After(names, marks, take) || n != maxBurst {
			t.Error("it is said again")
		}
	})
}
