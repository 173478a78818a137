package rule

import (
	"slices"
	"testing"
	"testing/synctest"

	"agentsite/device"
)

// TestLeaveEnds: what a turn may call before it blocks is gone after it. A rule with points of
// another site moves outside its turns, too, and would begin a second runner.
func TestLeaveEnds(t *testing.T) {
	l := &live{mu: device.NewMutex(), ended: true}
	if l.turn(t.Context(), func() {}); l.leave != nil {
		t.Error("it can be called after the turn")
	}
}

// TestRunner: turns come one after the other, and one that blocks has the others go on.
func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r runner
		var made []int
		moving := make(chan struct{})
		for i := range 5 {
			r.add(func(leave func()) {
				if i == 1 {
					leave()
					leave()
					<-moving
				}
				made = append(made, i)
			})
		}
		synctest.Wait()
		if want := []int{0, 2, 3, 4}; !slices.Equal(made, want) || r.running {
			t.Errorf("%v, running %v; want %v", made, r.running, want)
		}
		close(moving)
		synctest.Wait()
		r.add(func(func()) { made = append(made, 5) })
		synctest.Wait()
		if want := []int{0, 2, 3, 4, 1, 5}; !slices.Equal(made, want) || r.running {
			t.Errorf("%v, running %v; want %v", made, r.running, want)
		}
	})
}
