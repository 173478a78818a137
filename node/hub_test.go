package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// records is a Recorder that remembers.
type records struct {
	mu  sync.Mutex
	all []device.Reading
}

func (r *records) Record(d device.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func uri(address string) string { return agents.PointURI(address) }

func newHub() *Hub { return NewHub(nil, &records{}, uri) }

func good(point string, v device.Value) device.Reading {
	return device.Reading{Point: point, Value: v, Quality: device.Good, At: time.Now()}
}

func TestLatest(t *testing.T) {
	const notFinite = "the device reported NaN or Inf"
	number := device.Number
	for _, tt := range []struct {
		name    string
		in      device.Reading
		value   device.Value
		quality device.Quality
		why     string
	}{
		{"a number", good("a/b", number(21.5)), number(21.5), device.Good, ""},
		{"a bool", good("a/b", device.Bool(true)), device.Bool(true), device.Good, ""},
		{"a text", good("a/b", device.Text("open")), device.Text("open"), device.Good, ""},
		{"NaN", good("a/b", number(math.NaN())), device.Value{}, device.Bad, notFinite},
		{"infinity", good("a/b", number(math.Inf(1))), device.Value{}, device.Bad, notFinite},
		{"minus infinity", good("a/b", number(math.Inf(-1))), device.Value{}, device.Bad, notFinite},
		{"a fault with a value", device.Reading{Point: "a/b", Value: number(85), Quality: device.Bad, Why: "no answer"}, device.Value{}, device.Bad, "no answer"},
	} {
		rec := &records{}
		h := NewHub(nil, rec, uri)
		if r, ok := h.Latest("a/b"); ok || r != (device.Reading{}) {
			t.Errorf("%s: before the first: %+v", tt.name, r)
		}
		h.put(good("a/b", number(1)), time.Hour)
		tt.in.At = time.Now()
		h.put(tt.in, time.Hour)
		r, ok := h.Latest("a/b")
		want := device.Reading{Point: "a/b", Value: tt.value, Quality: tt.quality, At: tt.in.At, Why: tt.why}
		if !ok || r != want {
			t.Errorf("%s: %+v, want %+v", tt.name, r, want)
		}
		if len(rec.all) != 2 || rec.all[1] != want {
			t.Errorf("%s: recorded %+v", tt.name, rec.all)
		}
		if n, _, _ := h.Counts(); n != 2 {
			t.Errorf("%s: %d readings counted", tt.name, n)
		}
	}
}

// sink is a Sink that remembers, and looks around while it is told.
type sink struct {
	told func(device.Reading)
}

func (s sink) Told(r device.Reading) { s.told(r) }

// TestSinkFirst: the guard knows of a reading before it is kept, shown or announced.
func TestSinkFirst(t *testing.T) {
	rec := &records{}
	var h *Hub
	told := 0
	h = NewHub(sink{func(r device.Reading) {
		told++
		if last, ok := h.Latest("a/b"); ok || len(rec.all) != 0 {
			t.Errorf("when the guard was told, it was already there: %+v %+v", last, rec.all)
		}
	}}, rec, func(address string) string {
		if told != 1 {
			t.Error("it was announced before the guard was told")
		}
		return address
	})
	h.put(good("a/b", device.Number(1)), time.Hour)
	if told != 1 || len(rec.all) != 1 {
		t.Errorf("told %d times, recorded %+v", told, rec.all)
	}
}

// TestNewest: an older reading never replaces a newer one, and nobody hears of it.
func TestNewest(t *testing.T) {
	rec, told := &records{}, []device.Reading(nil)
	h := NewHub(sink{func(r device.Reading) { told = append(told, r) }}, rec, uri)
	newer, older := good("a/b", device.Bool(false)), good("a/b", device.Bool(true))
	older.At = newer.At.Add(-time.Millisecond)
	fault := device.Reading{Point: "a/b", Quality: device.Bad, At: older.At, Why: "loose"}
	h.put(newer, 0)
	h.put(older, time.Hour)
	h.put(fault, 0)
	if r, _ := h.Latest("a/b"); r != newer {
		t.Errorf("it reads %+v, want %+v", r, newer)
	}
	if n, _, _ := h.Counts(); n != 1 || len(rec.all) != 1 || len(told) != 1 {
		t.Errorf("%d counted, recorded %+v, told %+v", n, rec.all, told)
	}
	same := good("a/b", device.Bool(true))
	same.At = newer.At
	if h.put(same, 0); len(told) != 2 {
		t.Error("one of the same time was dropped")
	}
	h.Forget("a/b")
	if h.put(older, 0); len(told) != 3 {
		t.Error("one was held against a reading that is forgotten")
	}
}

// TestSinkInOrder: with many concurrent readings of a point, the guard gets them in order, and the
// last that it gets is shown.
func TestSinkInOrder(t *testing.T) {
	const each = 2000
	var last device.Reading // of one point: put keeps them apart
	h := NewHub(sink{func(r device.Reading) {
		if r.At.Before(last.At) {
			t.Errorf("it heard of %v after %v", r.At, last.At)
		}
		last = r
	}}, &records{}, uri)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range each {
				h.put(good("a/b", device.Number(float64(n*4+i))), 0)
			}
		})
	}
	all.Wait()
	if r, _ := h.Latest("a/b"); r != last {
		t.Errorf("shown %+v, told %+v", r, last)
	}
}

// TestSinkBlocks: a guard that hangs holds up the point that it is told of and no other.
func TestSinkBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		h := NewHub(sink{func(r device.Reading) {
			if r.Point == "a/b" {
				<-hang
			}
		}}, &records{}, uri)
		go h.put(good("a/b", device.Number(1)), time.Hour)
		synctest.Wait()
		h.put(good("a/c", device.Number(2)), time.Hour)
		if r, _ := h.Latest("a/c"); r.Value != device.Number(2) {
			t.Errorf("%+v", r)
		}
		if r, ok := h.Latest("a/b"); ok {
			t.Errorf("it is shown before the guard knows: %+v", r)
		}
		close(hang)
	})
}

// TestForget: a point that was forgotten has no reading until the next one.
func TestForget(t *testing.T) {
	h := newHub()
	h.put(good("a/b", device.Number(1)), time.Second)
	h.put(good("a/c", device.Number(2)), time.Second)
	h.Forget("a/b", "never/heard-of")
	if r, ok := h.Latest("a/b"); ok {
		t.Errorf("%+v", r)
	}
	if r, ok := h.Latest("a/c"); !ok || r.Value != device.Number(2) {
		t.Errorf("%+v", r)
	}
	h.put(good("a/b", device.Number(3)), time.Second)
	if r, ok := h.Latest("a/b"); !ok || r.Value != device.Number(3) {
		t.Errorf("%+v", r)
	}
}

func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		const every = 10 * time.Second
		h.put(good("a/sampled", device.Number(1)), every)
		h.put(good("a/event", device.Bool(true)), 0)
		h.put(device.Reading{Point: "a/bad", Quality: device.Bad, Why: "gone", At: time.Now()}, every)
		quality := func(address string, want device.Quality, why string) {
			t.Helper()
			r, _ := h.Latest(address)
			if r.Quality != want || (r.Why == "") != (why == "") || !strings.Contains(r.Why, why) {
				t.Errorf("%s after a while is %s %q, want %s %q", address, r.Quality, r.Why, want, why)
			}
		}
		time.Sleep(3 * every)
		quality("a/sampled", device.Good, "")
		time.Sleep(time.Nanosecond)
		quality("a/sampled", device.Stale, "too long")
		quality("a/event", device.Good, "")
		quality("a/bad", device.Bad, "gone")
		if r, _ := h.Latest("a/sampled"); r.Value != device.Number(1) {
			t.Errorf("a stale reading has lost its value: %+v", r)
		}
		h.put(good("a/sampled", device.Number(1)), every)
		quality("a/sampled", device.Good, "")
	})
}

// watch runs a watcher; told receives its updates one by one.
func watch(t *testing.T, h *Hub, which agents.Change, uris ...string) (told chan agents.Change, stop func()) {
	t.Helper()
	told = make(chan agents.Change)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	n := New(Parts{Hub: h})
	go func() {
		done <- n.Notify(ctx, agents.Principal{ID: "x"}, which, uris, func(c agents.Change) error {
			select {
			case told <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return told, func() {
		t.Helper()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		told, stop := watch(t, h, agents.Change{Tools: true, Prompts: true}, "agentsite:///a/1", "agentsite:///a/2", "agentsite:///a/3", "agentsite:///a/1")
		if c := <-told; c != (agents.Change{}) {
			t.Fatalf("first of all comes %+v", c)
		}
		synctest.Wait()
		next := func(want ...agents.Change) {
			t.Helper()
			synctest.Wait()
			var got []agents.Change
			for {
				select {
				case c := <-told:
					got = append(got, c)
					synctest.Wait()
					continue
				default:
				}
				break
			}
			if !slices.Equal(got, want) {
				t.Errorf("told %+v, want %+v", got, want)
			}
		}
		of := func(u string) agents.Change { return agents.Change{URI: u} }
		put := func(point string, v float64) { h.put(good(point, device.Number(v)), time.Second) }

		put("a/1", 1)
		next(of("agentsite:///a/1"))
		put("a/1", 1) // the same again
		next()
		put("a/9", 1) // not watched
		next()
		h.put(device.Reading{Point: "a/1", Quality: device.Bad, At: time.Now()}, time.Second)
		next(of("agentsite:///a/1"))
		h.put(good("a/2", device.Bool(true)), 0)
		next(of("agentsite:///a/2"))
		h.put(good("a/2", device.Bool(true)), 0) // every event is a change
		next(of("agentsite:///a/2"))
		h.Announce(agents.Change{Resources: true}) // not asked for
		next()
		h.Announce(agents.Change{Tools: true, Resources: true})
		next(agents.Change{Tools: true})

		// The watcher is busy with the first change while more happens. It is then told once of each
		// resource, in the order of its request.
		put("a/3", 1)
		synctest.Wait()
		_, before, _ := h.Counts()
		for i := range 100 {
			put("a/2", float64(i))
			put("a/1", float64(i+10))
		}
		h.Announce(agents.Change{Prompts: true})
		h.Announce(agents.Change{Tools: true})
		next(of("agentsite:///a/3"), agents.Change{Tools: true, Prompts: true}, of("agentsite:///a/1"), of("agentsite:///a/2"))
		if _, after, _ := h.Counts(); after-before != 198 {
			t.Errorf("%d changes were coalesced, want 198", after-before)
		}
		stop()
		if _, _, watchers := h.Counts(); watchers != 0 {
			t.Errorf("%d watchers are left", watchers)
		}
	})
}

// TestSlowWatcher: a watcher that never takes anything blocks neither a reading nor another
// watcher, and its pending changes are bounded.
func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		var uris []string
		for i := range 10 {
			uris = append(uris, fmt.Sprint("agentsite:///a/", i))
		}
		_, stopSlow := watch(t, h, agents.Change{}, uris...)
		fast, stopFast := watch(t, h, agents.Change{}, "agentsite:///a/0")
		<-fast
		synctest.Wait()
		begun := time.Now()
		for i := range 10_000 {
			h.put(good(fmt.Sprint("a/", i%20), device.Number(float64(i))), time.Second)
			if i%20 == 0 {
				if c := <-fast; c.URI != "agentsite:///a/0" {
					t.Fatal(c)
				}
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the readings waited %v for a watcher", took)
		}
		stopFast()
		stopSlow()
	})
}

func TestWatchEndsWithItsReader(t *testing.T) {
	h := newHub()
	n := New(Parts{Hub: h})
	gone := errors.New("gone")
	calls := 0
	err := n.Notify(t.Context(), agents.Principal{ID: "x"}, agents.Change{}, []string{"agentsite:///a"}, func(agents.Change) error {
		if calls++; calls == 2 {
			return gone
		}
		h.put(good("a", device.Number(1)), 0) // in between: nothing is missed
		return nil
	})
	if err != gone || calls != 2 {
		t.Errorf("%v after %d", err, calls)
	}
	if _, _, watchers := h.Counts(); watchers != 0 {
		t.Error("the watcher is still there")
	}
}

// TestHubAtOnce is for the race detector.
func TestHubAtOnce(t *testing.T) {
	h := newHub()
	told, stop := watch(t, h, agents.Change{Tools: true}, "agentsite:///a/0", "agentsite:///a/1")
	ctx, cancel := context.WithCancel(t.Context())
	var taking sync.WaitGroup
	taking.Go(func() {
		for {
			select {
			case <-told:
			case <-ctx.Done():
				return
			}
		}
	})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				h.put(good(fmt.Sprint("a/", g), device.Number(float64(i))), time.Second)
				h.Latest("a/0")
				h.Counts()
				h.Announce(agents.Change{Tools: true})
			}
		})
	}
	all.Wait()
	cancel()
	taking.Wait()
	stop()
	if n, _, _ := h.Counts(); n != 2000 {
		t.Errorf("%d readings counted", n)
	}
}
