package events

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/event"
	"agentsite/node"
	"agentsite/node/occurrence"
)

// TestBecause: a caller that reads a part of a lost device is not told the words about another part.
func TestBecause(t *testing.T) {
	o := occurrence.Occurrence{
		Kind: occurrence.Device, Of: "soil", State: occurrence.Begins, Because: "no probe at pin 7", Point: "soil/warmth",
	}
	for _, last := range []int{1, 2} { // moisture, and warmth
		pl := &plan{name: DeviceChanged}
		if err := pl.resolve(points[:last]); err != nil {
			t.Fatal(err)
		}
		d, ok := pl.occurred(&o, ann, false).(deviceData)
		if !ok || d.State != "lost" || (d.Because != "") != (last == 2) {
			t.Errorf("%d points: %+v", last, d)
		}
	}
}

// TestOccurrences: what is in no history is told from memory: to whom it concerns, once, and by both ways alike.
func TestOccurrences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Occurrences.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		time.Sleep(time.Minute)
		w.Tasks = someAgents{}
		stop, tasks := ask(StopChanged, ``), ask(TaskChanged, `{"agent":"gardener"}`)
		waits := ask(ApprovalWaits, `{}`)
		for _, r := range []*event.Request{&stop, &tasks, &waits} {
			if page := w.poll(t, r); len(page.Events) > 0 || page.Truncated {
				t.Errorf("%s: a first poll told %q", r.Name, told(page))
			}
		}
		have, end := w.follow(t, stop)
		synctest.Wait()
		for _, on := range []bool{true, false} {
			w.set(func() { w.stopped = on; close(w.changed); w.changed = make(chan struct{}) })
			synctest.Wait()
		}
		w.Occurrences.TaskStep("1", "gardener", ann.ID, "input_required", "How long?")
		w.Occurrences.TaskStep("2", "gardener", "did:key:bob", "completed", "")
		w.Occurrences.TaskStep("3", "other", ann.ID, "completed", "")
		w.Occurrences.TaskStep("1", "gardener", ann.ID, "completed", "")
		w.set(func() {
			w.waits = []node.Request{
				{Handle: "h", Who: ann.ID, Tool: "switch_output", Left: time.Minute}, {Handle: "g", Who: "did:key:bob"},
			}
			close(w.changed)
			w.changed = make(chan struct{})
		})
		synctest.Wait()
		for _, test := range []struct {
			r    *event.Request
			want []string
		}{
			{&stop, []string{"stop.changed true", "stop.changed false"}},
			{&tasks, []string{"task.changed input_required How long?", "task.changed completed"}},
			{&waits, []string{"approval.waits"}},
		} {
			page := w.poll(t, test.r)
			if got := told(page); !slices.Equal(got, test.want) || page.Truncated {
				t.Errorf("%q, want %q", got, test.want)
			}
			if test.r == &stop && !slices.Equal(have(), ids(page)) {
				t.Errorf("%q live, %q later", have(), ids(page))
			}
			if again := w.poll(t, test.r); len(again.Events) > 0 {
				t.Errorf("again: %q", told(again))
			}
		}
		end()
		// Another run knows none of it, and says so.
		old := stop
		w.start(t, "")
		if page := w.poll(t, &old); !page.Truncated || len(page.Events) > 0 {
			t.Errorf("after a restart: %q, truncated %v", told(page), page.Truncated)
		}
		if page := w.poll(t, &old); page.Truncated {
			t.Error("truncated twice")
		}
	})
}

// TestRingBounds: 10,000 occurrences at once are kept within bounds, and who missed some is told so.
func TestRingBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Tasks = someAgents{}
		r := ask(TaskChanged, `{}`)
		w.poll(t, &r)
		for i := range 10_000 {
			w.Occurrences.TaskStep(fmt.Sprint(i), "gardener", ann.ID, "completed", "")
		}
		if n := len(w.ring.all); n > maxRing {
			t.Errorf("%d are kept", n)
		}
		n, truncated := 0, 0
		for more := true; more; {
			page := w.poll(t, &r)
			n += len(page.Events)
			if page.Truncated {
				truncated++
			}
			more = page.More
		}
		if n != maxRing || truncated != 1 {
			t.Errorf("%d events, truncated %d times", n, truncated)
		}
	})
}

// TestEndWithoutBeginning: that the stop is not latched is told after each start, and is no event.
func TestEndWithoutBeginning(t *testing.T) {
	var r ring
	r.add(occurrence.Occurrence{Kind: occurrence.Stop, State: occurrence.Ends})
	r.add(occurrence.Occurrence{Kind: occurrence.Rollback, State: occurrence.Once})
	if all, next, whole := r.after(0); len(all) > 0 || next != 0 || !whole {
		t.Errorf("%+v", all)
	}
}

// TestBegunBefore: a caller that asks for what happens from now on is not told of what lasts already.
func TestBegunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stopped, w.waits = true, []node.Request{{Handle: "h", Who: ann.ID, Left: time.Minute}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Occurrences.Run(ctx)
		stop, wait := ask(StopChanged, `{}`), ask(ApprovalWaits, `{}`)
		w.poll(t, &stop)
		w.poll(t, &wait)
		synctest.Wait()
		if got := append(told(w.poll(t, &stop)), told(w.poll(t, &wait))...); len(got) > 0 {
			t.Error(got)
		}
		changed := w.changed
		w.set(func() { w.stopped, w.changed = false, make(chan struct{}) })
		close(changed)
		synctest.Wait()
		if got := told(w.poll(t, &stop)); !slices.Equal(got, []string{"stop.changed false"}) {
			t.Error(got)
		}
	})
}
