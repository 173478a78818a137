package tasks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// TestBounds: no asker has more than its share, others find room, owners too, and ended tasks go.
func TestBounds(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		fill := func(p agents.Principal) (n int) {
			for {
				if _, err := r.Ask(t.Context(), p, request("a", "1", "q")); err != nil {
					if kindOf(err) != device.Busy {
						t.Fatal(err)
					}
					return n
				}
				n++
			}
		}
		total := 0
		for i := range 10 {
			n := fill(agents.Principal{ID: fmt.Sprint("asker", i)})
			if total += n; n != maxAccount && total != maxLive-reserved {
				t.Errorf("asker %d has %d", i, n)
			}
		}
		if total != maxLive-reserved {
			t.Errorf("%d tasks of others", total)
		}
		if n := fill(boss) + fill(agents.Principal{ID: "other boss", Owner: true}) + fill(agents.Principal{ID: "third", Owner: true}); n != reserved {
			t.Errorf("%d tasks of owners", n)
		}
	})
	with(t, func(t *testing.T, r *rig) {
		first := r.ask(t, ann, request("a", "1", ""))
		for range maxEnded + 20 {
			r.ask(t, bob, request("a", "2", ""))
		}
		if _, err := r.Task(t.Context(), ann, first.ID); err != nil {
			t.Errorf("one asker pushed another's task out: %v", err)
		}
		if all, _ := r.List(t.Context(), boss); len(all) > maxEnded+1 {
			t.Errorf("%d are kept", len(all))
		}
		time.Sleep(keepEnded + time.Hour)
		r.ask(t, bob, request("a", "2", ""))
		if _, err := r.Task(t.Context(), ann, first.ID); err == nil || len(r.disk.files) > 2 {
			t.Errorf("after a week %d files are left: %v", len(r.disk.files), err)
		}
	})
	with(t, func(t *testing.T, r *rig) {
		if got := r.ask(t, ann, request("a", "1", strings.Repeat("s", maxSteps+1))); got.State != task.Failed || len(got.Steps) != maxSteps {
			t.Errorf("%d steps: %s", len(got.Steps), got.State)
		}
	})
}

// TestDisk: on a full disk new tasks and steps are refused, and leases are released. A task that
// was reported as failed is failed after a restart.
func TestDisk(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		with(t, func(t *testing.T, r *rig) {
			first := r.ask(t, ann, request("a", "1", "mwm"))
			r.disk.mu.Lock()
			r.disk.full, r.disk.frozen = true, frozen
			r.disk.mu.Unlock()
			if _, err := r.Ask(t.Context(), ann, request("b", "2", "m")); kindOf(err) != device.Unavailable {
				t.Errorf("on a full disk: %v", err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := r.task(t, ann, first.ID); got.State != task.Failed || got.Fault != "unavailable" || len(r.house.holding()) > 0 {
				t.Errorf("%+v, held %v", got, r.house.holding())
			}
			r.disk.mu.Lock()
			r.disk.full, r.disk.frozen = false, false
			r.disk.mu.Unlock()
			r.ask(t, bob, request("b", "3", "m")) // names what could not be named
			r.stop()
			r.start()
			synctest.Wait()
			if got := r.task(t, ann, first.ID); got.State != task.Failed || r.house.counts()["m1/p2"] > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestWatch: every state is told, in order, and what changes while emit runs is told once.
func TestWatch(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		first := r.ask(t, ann, request("a", "1", "w"))
		second := r.ask(t, ann, request("a", "2", "q"))
		var states []task.State
		done := make(chan error)
		go func() {
			done <- r.Watch(context.Background(), ann, second.ID, func(got task.Task) error {
				if len(states) == 0 || states[len(states)-1] != got.State {
					states = append(states, got.State)
				}
				return nil
			})
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, err := r.Answer(t.Context(), ann, second.ID, "q0", "no"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || states[0] != task.Submitted || states[len(states)-1] != task.Completed {
			t.Errorf("%v: %v", states, err)
		}
		if err := r.Watch(t.Context(), ann, first.ID, func(task.Task) error { return context.Canceled }); err != context.Canceled {
			t.Error(err)
		}
	})
}

// TestDamage: a changed file is set aside, its asker is told, and everything else goes on.
func TestDamage(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		first, second := r.ask(t, ann, request("a", "1", "mq")), r.ask(t, ann, request("b", "2", "mq"))
		r.stop()
		f := r.disk.files[first.ID+liveSuffix]
		f.data[len(f.data)-50] ^= 1
		r.disk.files["stray"] = &ramFile{data: []byte("x")}
		r.disk.files[strings.Repeat("A", 26)+liveSuffix] = &ramFile{data: []byte("agentsite task 2\n")}
		r.start()
		synctest.Wait()
		if got := r.task(t, ann, first.ID); got.State != task.Failed || got.Fault != "internal" || !strings.Contains(got.Says, "damaged") {
			t.Errorf("%+v", got)
		}
		if got := r.task(t, ann, second.ID); got.State != task.InputRequired {
			t.Errorf("%+v", got)
		}
		if r.disk.files["stray"] == nil || r.disk.files[strings.Repeat("A", 26)+liveSuffix] == nil || r.disk.files[first.ID+liveSuffix] != nil {
			t.Errorf("%d files", len(r.disk.files))
		}
	})
}
