package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json/jsontext"
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

// tardy is a script whose tasks with a question return late.
type tardy struct{ script }

func (s tardy) Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (jsontext.Value, error) {
	if strings.Contains(string(w.Task().Arguments), "q") {
		defer time.Sleep(5 * time.Second)
	}
	return s.script.Work(ctx, self, site, w)
}

// lateHouse is a house in which a return to safe takes as long as late says.
type lateHouse struct {
	*house
	late func(output string) time.Duration
}

func (h *lateHouse) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	if r.Value.IsZero() {
		time.Sleep(h.late(r.Output))
	}
	return h.house.Move(ctx, p, r)
}

// TestTurnAfterPause: a task that waits for an answer as its agent is paused goes on when that is
// resumed, and not before its former run has ended, whichever task had the turn.
func TestTurnAfterPause(t *testing.T) {
	for name, late := range map[string]time.Duration{"the agent": 0, "the outputs": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			with(t, func(t *testing.T, r *rig) {
				if late == 0 {
					r.crew.change("a", func(w *hosted.Worker) { w.Worker = tardy{} })
				}
				r.Manager.Site = &lateHouse{r.house, func(output string) time.Duration {
					if strings.HasPrefix(output, "m2") {
						return 2 * time.Second
					}
					return late
				}}
				asks, other := r.ask(t, ann, request("a", "1", "mqm")), r.ask(t, ann, request("a", "2", "mw"))
				pause := func(paused bool) {
					r.crew.change("a", func(w *hosted.Worker) { w.Paused = paused })
					r.Manager.Recheck()
				}
				pause(true)
				time.Sleep(2500 * time.Millisecond) // the other has left its turn
				if _, err := r.Cancel(t.Context(), ann, other.ID); err != nil {
					t.Fatal(err)
				}
				pause(false)
				synctest.Wait()
				if _, err := r.Answer(t.Context(), ann, asks.ID, "q0", "yes"); err != nil {
					if _, err = r.Answer(t.Context(), ann, asks.ID, "q1", "yes"); err != nil {
						t.Fatal(err)
					}
				}
				if synctest.Wait(); r.house.counts()["m1/p2"] != 0 {
					t.Error("it works while its former run returns its outputs to safe")
				}
				time.Sleep(10 * time.Minute)
				if got := r.task(t, ann, asks.ID); got.State != task.Completed {
					t.Errorf("10 minutes after its agent was resumed: %+v", got)
				}
			})
		})
	}
}
