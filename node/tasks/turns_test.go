package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
)

// TestTurns: a task that waits for an answer or an approval holds nobody up. The others come in turns
// by account, those of owners first.
func TestTurns(t *testing.T) {
	for _, waits := range []string{"mq", "o"} {
		with(t, func(t *testing.T, r *rig) {
			for i := range maxAccount {
				r.ask(t, ann, request("a", fmt.Sprint(i), waits))
			}
			if got := r.ask(t, boss, request("a", "9", "m")); got.State != task.Completed {
				t.Errorf("behind tasks that wait: %+v", got)
			}
		})
	}
	with(t, func(t *testing.T, r *rig) {
		names := make(map[string]string)
		for i, p := range []agents.Principal{ann, ann, ann, bob, boss, bob} {
			names[r.ask(t, p, request("a", fmt.Sprint(i), "w")).ID] = p.ID
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		all, err := r.List(t.Context(), boss)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b task.Task) int { return strings.Compare(a.Changed, b.Changed) })
		var order []string
		for _, one := range all {
			if one.State != task.Completed {
				t.Errorf("%+v", one)
			}
			order = append(order, names[one.ID])
		}
		if want := []string{ann.ID, boss.ID, bob.ID, ann.ID, bob.ID, ann.ID}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

// TestTurnBack: a task that has its answer goes on in its turn, and one that is canceled while it
// waits for that leaves it to others.
func TestTurnBack(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		asked, other := r.ask(t, ann, request("a", "1", "qm")), r.ask(t, ann, request("a", "2", "qm"))
		works := r.ask(t, boss, request("a", "3", "w"))
		for _, id := range []string{asked.ID, other.ID} {
			if _, err := r.Answer(t.Context(), ann, id, "q0", "yes"); err != nil {
				t.Fatal(err)
			}
		}
		if synctest.Wait(); r.house.counts()["m1/p1"] != 0 || r.task(t, boss, works.ID).State != task.Working {
			t.Error("two tasks of an agent work at once")
		}
		if got, err := r.Cancel(t.Context(), ann, other.ID); err != nil || got.State != task.Canceled {
			t.Errorf("%+v %v", got, err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.task(t, ann, asked.ID); got.State != task.Completed || r.house.counts()["m1/p1"] != 1 || r.house.counts()["m2/p1"] != 0 {
			t.Errorf("%+v", got)
		}
	})
}
