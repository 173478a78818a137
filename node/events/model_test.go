package events

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/device"

	"pgregory.net/rapid"
)

// modelled are the requests of the model.
var modelled = []event.Request{
	ask(PointCrossed, `{"point":"soil/moisture","below":30,"back":40}`),
	ask(PointCrossed, `{"point":"soil/moisture","below":30,"for_seconds":12}`),
	ask(ConditionMet, `{"when":"soil/moisture < 30 % or door/position == open"}`),
	ask(PointChanged, `{"point":"door/position"}`),
	ask(ButtonPressed, `{"point":"wall/button"}`),
	ask(OutputMoved, `{}`), ask(OutputReturned, `{}`),
}

// TestModel: whatever is read, set, restarted and cut off, two callers with a cursor of the same moment are told the
// same events, each once, however often they poll, and one who follows is told no other. After a restart, and only
// then, they are told that events may be missing.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.IntRange(0, len(modelled)-1).Draw(rt, "request")
		steps := rapid.SliceOfN(rapid.IntRange(0, 99), 5, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var step atomic.Int64 // of the wall clock
			w.now = func() (time.Time, bool) { return time.Now().Add(time.Duration(step.Load())), true }
			folder := t.TempDir()
			w.start(t, folder)
			time.Sleep(time.Minute)
			r := modelled[seed]
			often := r
			begin := w.poll(t, &often).Cursor
			seldom := r
			seldom.Cursor = begin
			var live []string
			var mu sync.Mutex
			follow := func() (end func()) {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				source, from := w.Source, r
				mu.Lock()
				from.Cursor = often.Cursor
				mu.Unlock()
				go func() {
					defer close(ended)
					source.Follow(ctx, ann, from, func(p event.Page) error {
						mu.Lock()
						defer mu.Unlock()
						live = append(live, ids(p)...)
						return nil
					})
				}()
				synctest.Wait()
				return func() { cancel(); <-ended }
			}
			end := follow()
			var told, whole []string
			restarted, killed, truncated := false, false, false
			take := func(r *event.Request, all *[]string) {
				for more := true; more; {
					page := w.poll(t, r)
					*all = append(*all, ids(page)...)
					truncated, more = truncated || page.Truncated, page.More
				}
			}
			for _, n := range steps {
				switch {
				case n < 50:
					w.read("soil/moisture", device.Number(float64(n)))
				case n < 60:
					w.read("door/position", device.Text([]string{"open", "closed"}[n%2]))
				case n < 65:
					w.read("wall/button", device.Text("press"))
				case n < 75:
					w.change("valve/on", device.Bool(n%2 == 0), []string{ann.ID, ""}[n%2], "")
				case n < 80:
					w.read("soil/moisture", device.Value{})
				case n < 85:
					step.Add(int64(n-82) * int64(time.Hour))
				case n < 88: // the end of a run, by kill -9 if n is odd, and the beginning of another
					end()
					take(&often, &told)
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					if killed = killed || n%2 == 1; n%2 == 0 {
						if err := w.history.Run(ctx); err != nil {
							t.Fatal(err)
						}
					}
					w.start(t, folder)
					restarted = true
					end = follow()
				default:
					often.Max = 1 + n%3
					take(&often, &told)
				}
				time.Sleep(time.Duration(1+n%7) * 700 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			end()
			take(&often, &told)
			take(&seldom, &whole)
			if truncated != restarted {
				t.Errorf("truncated %v, restarted %v", truncated, restarted)
			}
			if once := slices.Compact(slices.Sorted(slices.Values(told))); len(once) != len(told) {
				t.Errorf("%d of %d are told twice", len(told)-len(once), len(told))
			}
			for _, id := range whole { // what made a condition true may be lost: then another record makes it so
				if !killed && !slices.Contains(told, id) {
					t.Errorf("%s %s: %q was told at once, and not by and by", r.Name, r.Args, id)
				}
			}
			// When a run ended is not recorded: a condition that was true for long enough just before is told only live.
			if !restarted && !slices.Equal(told, whole) {
				t.Errorf("%s %s: %q were told by and by, %q at once", r.Name, r.Args, told, whole)
			}
			for _, id := range live {
				if !slices.Contains(told, id) {
					t.Errorf("%s %s: %q was told live, and not later", r.Name, r.Args, id)
				}
			}
			if !restarted && !slices.Equal(live, whole) {
				t.Errorf("%s %s: %q live, %q later", r.Name, r.Args, live, whole)
			}
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// TestLateCaller: who begins later is told nothing of before, and then the same as others.
func TestLateCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Minute)
		first := ask(ButtonPressed, `{"point":"wall/button"}`)
		w.poll(t, &first)
		w.read("wall/button", device.Text("press"))
		second := ask(ButtonPressed, `{"point":"wall/button"}`)
		if page := w.poll(t, &second); len(page.Events) > 0 {
			t.Errorf("%q", ids(page))
		}
		time.Sleep(time.Second)
		w.read("wall/button", device.Text("press"))
		if one, two := ids(w.poll(t, &first)), ids(w.poll(t, &second)); len(one) != 2 || len(two) != 1 || one[1] != two[0] {
			t.Errorf("%q and %q", one, two)
		}
	})
}

// TestKilled: events of a run that was killed before it stored anything have other IDs than those of the next run at
// the same times.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, folder := newWorld(t), t.TempDir()
		r := ask(ButtonPressed, `{"point":"wall/button"}`)
		var all []string
		for range 3 {
			w.start(t, folder)
			time.Sleep(time.Minute)
			if page := w.poll(t, &r); len(page.Events) > 0 || page.Truncated != (all != nil) {
				t.Errorf("%q, truncated %v", ids(page), page.Truncated)
			}
			w.read("wall/button", device.Text("press"))
			all = append(all, ids(w.poll(t, &r))...)
		}
		if len(all) != 3 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 3 {
			t.Errorf("%q", all)
		}
	})
}

// BenchmarkIdle is the cost of a reading that sixteen followers of another point are not woken by.
func BenchmarkIdle(b *testing.B) {
	w := &world{all: points, hidden: make(map[string]bool), changed: make(chan struct{})}
	w.start(nil, "")
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	ready := make(chan struct{}, 16)
	for range 16 {
		all.Go(func() {
			r := event.Request{Name: ButtonPressed, Args: json.RawMessage(`{"point":"wall/button"}`)}
			w.Follow(ctx, ann, r, func(event.Page) error { ready <- struct{}{}; return nil })
		})
	}
	for range 16 {
		<-ready
	}
	for b.Loop() {
		w.hub.Announce(agents.Change{URI: agents.PointURI("soil/moisture")})
	}
	cancel()
	all.Wait()
}
