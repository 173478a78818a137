package rule

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/alarm"
)

// TestLeaveEnds: what a turn may call before it blocks is gone after it. A rule with points of
// another site moves outside its turns, too, and would begin a second runner.
func TestLeaveEnds(t *testing.T) {
	l := &live{mu: device.NewMutex(), ended: true}
	if l.turn(t.Context(), func() {}); l.leave != nil {
		t.Error("it can be called after the turn")
	}
}

// TestRunner: turns come one after the other, those of one moment in the order of the rules, and one
// that blocks has the others go on after a moment.
func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner{world: World{AfterFunc: alarm.Go}}
		var mu sync.Mutex
		var made []int
		note := func(i int) {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, i)
		}
		moving := make(chan struct{})
		entries := make([]*runnerEntry, 5)
		for _, i := range []int{3, 0, 4, 1, 2} {
			entries[i] = &runnerEntry{order: i + 1, turn: func(leave func()) {
				switch i {
				case 1:
					leave()
					leave()
					<-moving
				case 2: // it is answered at once
					leave()
				}
				note(i)
			}}
			r.join(entries[i])
		}
		want := func(want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Equal(made, want) || r.running {
				t.Errorf("%v, running %v; want %v", made, r.running, want)
			}
			made = nil
		}
		soon := time.Now().Add(time.Second)
		for _, i := range []int{4, 2, 3, 0, 1} {
			r.wakeAt(entries[i], soon)
		}
		want()
		time.Sleep(time.Second + patience)
		want(0, 2, 3, 4)
		close(moving)
		want(1)
		r.wake(entries[2])
		want(2)
		entries[2].turn = func(func()) { r.wake(entries[0]); r.wake(entries[3]); note(2) }
		r.wake(entries[2])
		want(2, 3, 0)
		r.wakeAt(entries[3], time.Now().Add(time.Second))
		r.wakeAt(entries[1], time.Now().Add(time.Minute))
		r.remove(entries[3])
		time.Sleep(time.Hour)
		want(1)
	})
}
