package events

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/device"
)

// TestEvents: each type tells what was recorded after its cursor, once, and under the same IDs as who follows is told.
func TestEvents(t *testing.T) {
	on, off := device.Bool(true), device.Bool(false)
	for _, test := range []struct {
		name, args string
		do         func(w *world)
		want       []string
	}{
		{PointCrossed, `{"point":"soil/moisture","below":30,"back":35}`, func(w *world) {
			for _, v := range []float64{40, 29, 31, 28, 36, 20} { // not again before 35
				w.read("soil/moisture", device.Number(v))
				time.Sleep(5 * time.Second)
			}
		}, []string{"point.crossed soil/moisture 29", "point.crossed soil/moisture 20"}},
		{PointCrossed, `{"point":"soil/moisture","below":30,"for_seconds":60}`, func(w *world) {
			for i := range 40 {
				v := 20.0
				if i == 5 {
					v = 50
				}
				w.read("soil/moisture", device.Number(v))
				time.Sleep(5 * time.Second)
			}
		}, []string{"point.crossed soil/moisture 20"}},
		{PointCrossed, `{"point":"soil/moisture","below":30,"for_seconds":60}`, func(w *world) {
			w.read("soil/moisture", device.Number(20)) // and it is stale before a minute
			time.Sleep(2 * time.Minute)
			w.read("soil/moisture", device.Number(20))
			time.Sleep(31 * time.Second)
		}, nil},
		{ConditionMet, `{"when":"soil/moisture < 30 % and door/position == open"}`, func(w *world) {
			w.read("door/position", device.Text("open"))
			w.read("soil/moisture", device.Number(20))
			time.Sleep(2 * time.Second)
			w.read("door/position", device.Text("closed"))
			time.Sleep(2 * time.Second)
			w.read("door/position", device.Text("open"))
			time.Sleep(2 * time.Second)
		}, []string{"condition.met soil/moisture 20", "condition.met soil/moisture 20"}},
		{PointChanged, `{"point":"door/position"}`, func(w *world) {
			for _, v := range []string{"open", "closed", "open", "closed"} {
				w.read("door/position", device.Text(v))
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		}, []string{"point.changed door/position open", "point.changed door/position closed"}},
		{ButtonPressed, `{"point":"wall/button"}`, func(w *world) {
			w.read("wall/button", device.Text("press"))
			w.read("wall/button", device.Text("press"))
			w.read("wall/button", device.Bool(true))
			w.read("wall/button", device.Bool(false)) // let go
		}, []string{
			"button.pressed wall/button press", "button.pressed wall/button press", "button.pressed wall/button true",
		}},
		{OutputMoved, `{}`, func(w *world) {
			w.change("valve/on", on, ann.ID, "")
			w.change("valve/on", off, "", "asked for")
			w.change("valve/on", on, "somebody", "")
		}, []string{"output.moved valve/on true " + ann.ID, "output.moved valve/on true"}},
		{OutputReturned, `{"output":"valve/on"}`, func(w *world) {
			w.change("valve/on", on, ann.ID, "")
			w.change("valve/on", off, "", "")
			w.change("valve/on", on, ann.ID, "")
			w.change("valve/on", off, "", "the sensor is not read any more")
		}, []string{"output.returned valve/on false", "output.returned valve/on false true"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			time.Sleep(time.Minute)
			w.read("valve/on", off)
			w.read("soil/moisture", device.Number(50))
			time.Sleep(time.Second)
			r := ask(test.name, test.args)
			begin := w.poll(t, &r)
			if len(begin.Events) > 0 || begin.Truncated {
				t.Errorf("%s: a first poll told %q", test.name, told(begin))
			}
			follow, end := w.follow(t, event.Request{Name: r.Name, Args: r.Args, Cursor: begin.Cursor})
			test.do(w)
			synctest.Wait()
			page := w.poll(t, &r)
			if got := told(page); !slices.Equal(got, test.want) || page.Truncated || page.More {
				t.Errorf("%s %s: %q, truncated %v; want %q", test.name, test.args, got, page.Truncated, test.want)
			}
			if got := follow(); !slices.Equal(got, ids(page)) {
				t.Errorf("%s: %q were told live, %q later", test.name, got, ids(page))
			}
			if again := w.poll(t, &r); len(again.Events) > 0 || again.Truncated {
				t.Errorf("%s: told again: %q", test.name, told(again))
			}
			for i, e := range page.Events { // and on from each
				rest, err := w.Poll(t.Context(), ann, event.Request{Name: r.Name, Args: r.Args, Cursor: e.Cursor})
				if err != nil || !slices.Equal(ids(rest), ids(page)[i+1:]) {
					t.Errorf("%s: after the %dth: %q, %v", test.name, i, told(rest), err)
				}
			}
			end()
		})
	}
}

// TestRestart: what was stored is told after a restart under its ID, and as not known to be all.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := newWorld(t)
		w.start(t, folder)
		time.Sleep(time.Minute)
		r := ask(ButtonPressed, `{"point":"wall/button"}`)
		w.poll(t, &r)
		begin := r
		w.read("wall/button", device.Text("press"))
		before := w.poll(t, &r)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.history.Run(ctx); err != nil { // writes the rest
			t.Fatal(err)
		}
		w.start(t, folder)
		if page := w.poll(t, &begin); !page.Truncated || !slices.Equal(ids(page), ids(before)) {
			t.Errorf("%q instead of %q, truncated %v", ids(page), ids(before), page.Truncated)
		}
		if page := w.poll(t, &r); !page.Truncated || len(page.Events) > 0 {
			t.Errorf("%q again, truncated %v", told(page), page.Truncated)
		}
		if page := w.poll(t, &r); page.Truncated {
			t.Error("truncated twice")
		}
		w.read("wall/button", device.Text("press"))
		if page := w.poll(t, &r); page.Truncated || len(page.Events) != 1 || page.Events[0].ID == before.Events[0].ID {
			t.Errorf("%+v", page)
		}
	})
}

// TestPermission: a point that may not be read is not told apart from none, and who could read it once is told that the
// permission has ended.
func TestPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.hidden["soil/warmth"] = true })
		for _, r := range []event.Request{
			ask(PointCrossed, `{"point":"soil/warmth","above":1}`), ask(PointCrossed, `{"point":"soil/none","above":1}`),
			ask(ConditionMet, `{"when":"soil/warmth > 1 Cel"}`), ask(ConditionMet, `{"when":"soil/none > 1 Cel"}`),
			ask("soil.dry", `{}`), ask(PointChanged, `{"point":"soil/moisture"}`), ask(DeviceChanged, `{"device":"none"}`),
		} {
			if _, err := w.Poll(t.Context(), ann, r); err != event.ErrUnknown {
				t.Errorf("%s %s: %v", r.Name, r.Args, err)
			}
		}
		r := ask(PointCrossed, `{"point":"soil/moisture","below":30}`)
		w.poll(t, &r)
		_, end := w.follow(t, r)
		w.set(func() { w.hidden["soil/moisture"] = true })
		w.read("soil/moisture", device.Number(1))
		synctest.Wait()
		if _, err := w.Poll(t.Context(), ann, r); err != event.ErrForbidden {
			t.Errorf("poll: %v", err)
		}
		if _, err := w.Check(t.Context(), ann, r); err != event.ErrForbidden {
			t.Errorf("check: %v", err)
		}
		if err := end(); err != event.ErrForbidden {
			t.Errorf("follow: %v", err)
		}
	})
}

// TestRate: what a rate does not allow yet is told later, and once.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newPolled(t)
		have, end := w.follow(t, r)
		w.set(func() { w.busy = true })
		w.read("wall/button", device.Text("press"))
		time.Sleep(time.Second)
		if _, err := w.Poll(t.Context(), ann, r); device.AsFault(err).Kind != device.Busy {
			t.Error(err)
		}
		if len(have()) > 0 {
			t.Error("told without a permission")
		}
		w.set(func() { w.busy = false })
		time.Sleep(time.Minute)
		if len(have()) != 1 {
			t.Errorf("%q", have())
		}
		if err := end(); !errors.Is(err, t.Context().Err()) && err == nil {
			t.Error(err)
		}
	})
}

// TestCharged: each event costs what a reading costs, and the rest of a page is told when the rate allows it. While
// it is used up, a poll is refused whether something happened or not: otherwise conditions would tell values for
// nothing.
func TestCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Minute)
		r := ask(ConditionMet, `{"when":"soil/moisture > 0 %","until":"soil/moisture > 0 %"}`)
		w.poll(t, &r)
		for i := range 10 {
			w.read("soil/moisture", device.Number(float64(i+1)))
			time.Sleep(time.Second)
		}
		w.set(func() { w.left = 3 })
		page := w.poll(t, &r)
		if len(page.Events) != 3 || !page.More || page.Cursor != page.Events[2].Cursor {
			t.Errorf("%q, more %v", told(page), page.More)
		}
		w.set(func() { w.left = 0 })
		if rest := w.poll(t, &r); len(rest.Events) != 2 || rest.More || rest.Events[0].ID == page.Events[2].ID {
			t.Errorf("%q, more %v", told(rest), rest.More)
		}
		w.set(func() { w.busy = true })
		if page, err := w.Poll(t.Context(), ann, r); err == nil || device.AsFault(err).Kind != device.Busy {
			t.Errorf("nothing happened: %q, %v", told(page), err)
		}
	})
}

// TestLooks: points that are read often, and not at the same time, do not have each of their readings looked at.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		have, end := w.follow(t, ask(ConditionMet, `{"when":"soil/moisture > 90 % and soil/warmth > 90 Cel"}`))
		w.set(func() { w.looks = 0 })
		for i := range 100 {
			w.read("soil/moisture", device.Number(float64(i)))
			w.read("soil/warmth", device.Number(float64(i)))
			time.Sleep(20 * time.Millisecond)
		}
		w.set(func() {
			if w.looks > 6 {
				t.Errorf("%d looks in 2 seconds", w.looks)
			}
		})
		time.Sleep(2 * time.Second)
		if len(have()) != 1 {
			t.Errorf("%q", have())
		}
		end()
	})
}

// TestGone: for a caller that has gone the past is not read to its end.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := ask(PointCrossed, `{"point":"soil/moisture","above":0}`)
		w.poll(t, &r)
		w.read("soil/moisture", device.Number(1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if page, err := w.Poll(ctx, ann, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%q, %v", told(page), err)
		}
	})
}

// TestRequests: equal requests have equal bytes, and others get an error that says what to do.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, err := w.Check(t.Context(), ann, ask(PointCrossed, `{"point":"soil/moisture","below":30,"back":35.0}`))
		two, wrong := w.Check(t.Context(), ann, ask(PointCrossed, ` {"back":35,"below":3e1, "point":"soil/moisture"}`))
		if err != nil || wrong != nil || !bytes.Equal(one, two) {
			t.Errorf("%s, %v; %s, %v", one, err, two, wrong)
		}
		for _, r := range []event.Request{
			ask(PointCrossed, `{"point":"soil/moisture"}`), ask(PointCrossed, `{"point":"soil/moisture","below":1,"above":1}`),
			ask(PointCrossed, `{"point":"soil/moisture","below":30,"back":20}`), ask(PointCrossed, `{"point":1}`),
			ask(PointCrossed, `[]`), ask(PointChanged, `{}`), ask(PointChanged, `{"point":"door/position","above":1}`),
			ask(ConditionMet, `{"when":"soil/moisture <"}`), ask(ConditionMet, `{"when":"now > 6:00"}`),
			ask(
				ConditionMet, `{"when":"mean(soil/moisture, 10m) > 3 %"}`,
			), ask(ConditionMet, `{"when":"age(soil/moisture) > 3s"}`),
			ask(ConditionMet, `{"when":"1 > 0"}`), ask(ConditionMet, `{"when":"soil/moisture < 1 %","for":"x"}`),
			ask(
				ConditionMet, `{"when":"soil/moisture < 1 %","for":"24h"}`,
			), ask(ButtonPressed, `{"point":"wall/button","point":"wall/button"}`),
		} {
			if _, err := w.Check(t.Context(), ann, r); err == nil || device.AsFault(err).Kind != device.Invalid {
				t.Errorf("%s %s: %v", r.Name, r.Args, err)
			} else {
				t.Log(err)
			}
		}
		all, err := w.Types(t.Context(), ann)
		if err != nil || len(all) != 9 { // no tasks
			t.Errorf("%d types, %v", len(all), err)
		}
		w.set(func() { w.all = nil })
		if all, _ = w.Types(t.Context(), ann); len(all) != 2 { // the stop, and its own calls
			t.Errorf("without points: %d", len(all))
		}
	})
}

// TestCursor: a cursor is of one caller, type and request, and is of the same length for all events.
func TestCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Minute)
		r := ask(ButtonPressed, `{"point":"wall/button"}`)
		first := w.poll(t, &r).Cursor
		w.read("wall/button", device.Text("press"))
		if next := w.poll(t, &r).Cursor; len(next) != len(first) {
			t.Errorf("lengths %d and %d", len(first), len(next))
		}
		if _, err := w.Poll(t.Context(), owner, r); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("another caller: %v", err)
		}
		r.Name, r.Args = PointChanged, []byte(`{"point":"door/position"}`)
		if _, err := w.Poll(t.Context(), ann, r); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("another event: %v", err)
		}
	})
}

// TestTooOld: what is more than a day old is not replayed, and MaxAge is no reason to say that something is missing.
func TestTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newPolled(t)
		w.read("wall/button", device.Text("press"))
		time.Sleep(time.Hour)
		aged := r
		aged.MaxAge = time.Minute
		if page := w.poll(t, &aged); len(page.Events) > 0 || page.Truncated {
			t.Errorf("%q, truncated %v", told(page), page.Truncated)
		}
		time.Sleep(24 * time.Hour)
		if page := w.poll(t, &r); len(page.Events) > 0 || !page.Truncated {
			t.Errorf("%q, truncated %v", told(page), page.Truncated)
		}
		time.Sleep(time.Hour)
		if page := w.poll(t, &r); page.Truncated {
			t.Error("truncated twice")
		}
	})
}

// TestManyAtOnce: 10,000 presses leave a burst, which is told to be not all; pages end.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := newPolled(t)
		for range 10_000 {
			w.read("wall/button", device.Text("press"))
		}
		r.Max = 7
		truncated, n := false, 0
		seen := make(map[string]bool)
		for more := true; more; {
			page := w.poll(t, &r)
			for _, id := range ids(page) {
				if n++; seen[id] {
					t.Error("told twice")
				}
				seen[id] = true
			}
			truncated, more = truncated || page.Truncated, page.More
		}
		if !truncated || n > 100 || n == 0 {
			t.Errorf("%d events, truncated %v", n, truncated)
		}
	})
}

// TestArguments: an error names the argument and what to write, and not the types of this program.
func TestArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, test := range []struct{ name, args, begins string }{
			{PointCrossed, `{"point":"soil/moisture","above":"25"}`, "above: "},
			{PointCrossed, `{"point":["soil/moisture"],"above":25}`, "point: "},
			{PointCrossed, `{"point":"soil/moisture","above":25,"for":"10m"}`, "for: "},
			{PointCrossed, `{"point":"soil/moisture","above":25,"unit":"%"}`, "unit: "},
			{ConditionMet, `{"when":"soil/moisture < 30 %","for":600}`, "for: "},
			{StopChanged, `{"point":"soil/moisture"}`, "point: "},
			{PointCrossed, `{"above":25,"above":26}`, "arguments: "},
			{PointCrossed, `["soil/moisture"]`, "arguments: "},
		} {
			_, err := w.Poll(t.Context(), ann, ask(test.name, test.args))
			if err == nil || !strings.HasPrefix(err.Error(), test.begins) || strings.Contains(err.Error(), "json") ||
				strings.Contains(err.Error(), "Go ") {
				t.Errorf("%s %s: %v", test.name, test.args, err)
			}
		}
	})
}

// TestNewPoint: who follows all outputs is told of one that comes later.
func TestNewPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Minute)
		w.set(func() { w.all = points[:3] })
		if _, err := w.Check(t.Context(), ann, ask(OutputMoved, `{}`)); err != event.ErrUnknown {
			t.Errorf("without an output: %v", err)
		}
		lamp := points[4]
		lamp.Point = "lamp/on"
		w.set(func() { w.all = append(points[:3:3], lamp) })
		have, end := w.follow(t, ask(OutputMoved, `{}`))
		w.set(func() { w.all = append(points[:5:5], lamp) })
		w.hub.Announce(agents.Change{Resources: true})
		synctest.Wait()
		w.change("valve/on", device.Bool(true), ann.ID, "")
		time.Sleep(time.Second)
		if n := len(have()); n != 1 {
			t.Errorf("%d events", n)
		}
		end()
	})
}

// TestHeldLong: the return of an output that was held for longer than is replayed is told to who polls then.
func TestHeldLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Minute)
		r := ask(OutputReturned, `{"output":"valve/on"}`)
		w.poll(t, &r)
		w.change("valve/on", device.Bool(true), ann.ID, "")
		w.poll(t, &r)
		time.Sleep(maxReplay + time.Hour)
		w.change("valve/on", device.Bool(false), "", "")
		if page := w.poll(t, &r); len(page.Events) != 1 || !page.Truncated {
			t.Errorf("%q, truncated %v", told(page), page.Truncated)
		}
	})
}
