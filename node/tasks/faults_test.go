package tasks

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/task"
)

// TestDiskFaults: while a disk is full or read-only now and then, nothing is done twice, what was
// promised is there in a state that may follow, and what a failed task moved is released.
func TestDiskFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	chance := rand.New(rand.NewPCG(seed, 2))
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		var mistake string
		synctest.Test(t, func(*testing.T) {
			w, r := newWorkload(chance), newRig()
			r.crew = newCrew("a", "b", "c", "d")
			never := func() bool { return false }
			r.start()
			fault := func(full, frozen bool) {
				r.disk.mu.Lock()
				r.disk.full, r.disk.frozen = full, frozen
				r.disk.mu.Unlock()
			}
			left := 1
			for n := 0; left > 0 && mistake == ""; n++ {
				fault(n < 40 && chance.IntN(3) == 0, n < 40 && chance.IntN(4) == 0)
				if w.ask(r.Manager, never); n > 50 { // refusals are right while there is a fault
					mistake = w.ask(r.Manager, never)
				}
				synctest.Wait()
				if mistake == "" {
					left, mistake = w.look(r.Manager, never)
				}
				r.desk.approve()
				if n%10 == 9 {
					fault(false, false)
					synctest.Wait()
					r.stopTimers()
					r.stop()
					clear(r.house.held)
					r.desk.approve()
					r.start()
				}
				time.Sleep(30 * time.Second)
			}
			for i, id := range w.ids {
				if mistake != "" {
					break
				}
				got, err := r.Task(t.Context(), w.asker(i), id)
				if err != nil || !got.State.Ended() {
					mistake = "it has not ended: " + id
				}
				for at := range w.scripts[i] {
					name := string(w.scripts[i][at]) + number(i) + "/p" + number(at)
					if r.house.counts()[name] > 1 {
						mistake = name + " was done twice"
					}
					if r.house.holds(name) && got.State != task.Completed {
						mistake = name + " is held after the task has " + string(got.State) + ": " + got.Says
					}
				}
			}
			r.stopTimers()
			r.stop()
		})
		if mistake != "" {
			t.Fatalf("%s (seed %d, round %d)", mistake, seed, round)
		}
	}
}
