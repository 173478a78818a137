package tasks

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/task"
)

// TestClockSet: a task that has ended is kept for its time, and known by its key, whatever the clock
// shows meanwhile, also over restarts.
func TestClockSet(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		name    string
		before  bool          // the clock is known at first
		ahead   time.Duration // and then
		restart bool
		listed  bool
	}{
		{"set", false, week + 24*time.Hour, false, true},
		{"set after a restart", false, week + 24*time.Hour, true, true},
		{"wrong", true, 365 * 24 * time.Hour, false, true},
		{"wrong after a restart", true, 365 * 24 * time.Hour, true, false},
		{"behind", true, -365 * 24 * time.Hour, true, true},
	} {
		with(t, func(t *testing.T, r *rig) {
			r.sure = tt.before
			q := keyed(request("a", "1", "m"), "key 1")
			first := r.ask(t, ann, q)
			if first.State != task.Completed {
				t.Fatal(first.State)
			}
			if tt.restart {
				r.stop()
			}
			r.sure, r.ahead = true, tt.ahead
			if tt.restart {
				r.start()
				synctest.Wait()
			}
			list := func() int {
				all, err := r.List(t.Context(), ann)
				if err != nil {
					t.Fatal(err)
				}
				return len(all)
			}
			if n := list(); (n == 1) != tt.listed {
				t.Errorf("%s: %d are listed", tt.name, n)
			}
			if again := r.ask(t, ann, q); again.ID != first.ID || r.house.counts()["m1/p0"] != 1 {
				t.Errorf("%s: it is made %d times", tt.name, r.house.counts()["m1/p0"])
			}
			r.ahead = 0
			if n := list(); n != 1 {
				t.Errorf("%s: %d are listed once the clock is right", tt.name, n)
			}
			time.Sleep(week + time.Hour)
			r.ask(t, bob, request("a", "2", "")) // which removes what is old
			if n := list(); n != 0 || len(r.disk.files) != 1 {
				t.Errorf("%s: after a week %d are listed, and %d files are left", tt.name, n, len(r.disk.files))
			}
		})
	}
}

// TestStepAt: when a step was made is known over a restart, with the downtime as far as the clock was
// known before and after, and not moved by a clock that is set.
func TestStepAt(t *testing.T) {
	for _, tt := range []struct {
		before, after bool
		ahead         time.Duration
		down          time.Duration // as it counts
	}{
		{true, true, 0, time.Hour},
		{false, true, 6 * 24 * time.Hour, 0},
		{true, false, 0, 0},
		{true, true, -24 * time.Hour, 0},
	} {
		with(t, func(t *testing.T, r *rig) {
			r.sure = tt.before
			q := request("a", "1", "smwwwwww")
			q.Seconds = new(5 * 3600.0)
			got, err := r.Ask(t.Context(), ann, q)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(90 * time.Second) // a w is stored after a minute
			r.stop()
			time.Sleep(time.Hour)
			r.sure, r.ahead = tt.after, tt.ahead
			r.start()
			synctest.Wait()
			now, err := r.Task(t.Context(), ann, got.ID)
			if err != nil || len(now.Steps) != 3 {
				t.Fatalf("%+v %v", now.Steps, err)
			}
			tail := time.Duration(0) // the half minute that no entry has
			if tt.down > 0 {
				tail = 30 * time.Second
			}
			for i, ago := range []time.Duration{time.Minute, time.Minute, 0} {
				if off := time.Since(now.Steps[i].At) - ago - tt.down - tail; off.Abs() > time.Second {
					t.Errorf("%+v: step %d is %v off", tt, i+1, off)
				}
			}
		})
	}
}
