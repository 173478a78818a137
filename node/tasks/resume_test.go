package tasks

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/task"
	"agentsite/node/hosted"
)

// TestResumeWhileLooking: an agent that is resumed while its tasks are looked through takes them up.
func TestResumeWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.start()
		defer func() { r.Manager.stopTimers(); r.stop() }()
		synctest.Wait()
		inner, calls := r.Manager.Workers, 0
		r.Manager.Workers = func() []hosted.Worker {
			all := inner()
			if all[0].Paused {
				if calls++; calls == 3 { // review, run, and now next
					r.crew.change("a", func(w *hosted.Worker) { w.Paused = false })
					r.Manager.review() // as Run does on Recheck
				}
			}
			return all
		}
		got, err := r.Ask(t.Context(), ann, request("a", "1", "wm"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.crew.change("a", func(w *hosted.Worker) { w.Paused = true })
		r.Manager.Recheck()
		synctest.Wait()
		time.Sleep(50 * time.Minute)
		if now := r.task(t, ann, got.ID); now.State == task.Working || calls < 3 {
			t.Errorf("50 minutes later it is %s, after %d looks", now.State, calls)
		}
	})
}
