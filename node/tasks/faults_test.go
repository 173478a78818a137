package tasks

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/task"
	"agentsite/device"
)

// TestDiskFaults: while a disk is full or read-only now and then, nothing is done twice,
// acknowledged tasks are there in a permitted state, and leases of a failed task are released.
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

// unsure is a disk that cannot say whether names are durable, and removes nothing.
type unsure struct {
	*ram
	fails bool
}

func (u *unsure) unsure() error {
	if u.fails {
		return &fs.PathError{Op: "sync", Err: errors.New("input/output error")}
	}
	return nil
}

func (u *unsure) Sync() error { return errors.Join(u.ram.Sync(), u.unsure()) }

func (u *unsure) Rename(from, to string) error {
	return errors.Join(u.ram.Rename(from, to), u.unsure())
}

func (u *unsure) Remove(name string) error {
	if u.fails {
		return u.unsure()
	}
	return u.ram.Remove(name)
}

// TestUnsureNames: a task that was refused is not done after a restart either. An ended task whose
// new name may not be durable is found by it.
func TestUnsureNames(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		u := &unsure{ram: r.disk}
		r.Manager.disk = u
		ended := r.ask(t, ann, request("a", "1", "w"))
		u.fails = true
		if _, err := r.Ask(t.Context(), ann, request("b", "2", "m")); kindOf(err) != device.Unavailable {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		u.fails = false
		r.Recheck()
		synctest.Wait()
		if got := r.task(t, ann, ended.ID); got.State != task.Completed {
			t.Errorf("%+v", got)
		}
		time.Sleep(keepEnded + time.Hour)
		r.ask(t, bob, request("a", "3", "")) // the old ones go
		for name := range r.disk.files {
			if strings.Contains(name, ended.ID) {
				t.Errorf("%s is left", name)
			}
		}
	})
	with(t, func(t *testing.T, r *rig) {
		r.Manager.disk = &unsure{r.disk, true}
		if _, err := r.Ask(t.Context(), ann, request("b", "2", "m")); kindOf(err) != device.Unavailable {
			t.Fatal(err)
		}
		r.stop()
		r.start()
		synctest.Wait()
		if n := r.house.counts()["m2/p0"]; n > 0 {
			t.Error("what was refused is done")
		}
	})
}

// TestCancelReadOnly: on a read-only disk a task is canceled and releases what it holds, and its
// asker is told what that cannot promise.
func TestCancelReadOnly(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		first := r.ask(t, ann, request("a", "1", "mwm"))
		r.disk.mu.Lock()
		r.disk.full, r.disk.frozen = true, true
		r.disk.mu.Unlock()
		got, err := r.Cancel(t.Context(), ann, first.ID)
		if err != nil || got.State != task.Canceled || !strings.Contains(got.Says, "goes on then") || len(r.house.holding()) > 0 {
			t.Errorf("%+v %v, held %v", got, err, r.house.holding())
		}
		r.disk.mu.Lock()
		r.disk.full, r.disk.frozen = false, false
		r.disk.mu.Unlock()
		r.Recheck() // the disk is well before the restart: nothing goes on
		r.stop()
		r.start()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := r.task(t, ann, first.ID); got.State != task.Canceled || r.house.counts()["m1/p2"] > 0 {
			t.Errorf("%+v", got)
		}
	})
}
