package tasks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"
)

// TestEndWithinLastStep: ending a task within its last step also releases the outputs that this
// step has moved.
func TestEndWithinLastStep(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(r *rig, id string)
		state task.State
	}{
		"canceled": {func(r *rig, id string) { r.Cancel(context.Background(), ann, id) }, task.Canceled},
		"late":     {func(*rig, string) { time.Sleep(2 * time.Hour) }, task.Failed},
		"revoked":  {func(r *rig, _ string) { r.desk.refuse(ann, true); r.Recheck() }, task.Canceled},
		"gone":     {func(r *rig, _ string) { r.crew.mu.Lock(); r.crew.all = r.crew.all[1:]; r.crew.mu.Unlock(); r.Recheck() }, task.Failed},
		"paused": {func(r *rig, _ string) {
			r.crew.change("a", func(w *hosted.Worker) { w.Paused = true })
			r.Recheck()
		}, task.Completed},
		"paused, and nobody knows it yet": {func(r *rig, _ string) {
			r.crew.change("a", func(w *hosted.Worker) { w.Paused = true })
		}, task.Completed},
		"the site's end": {func(r *rig, _ string) { r.cancel() }, task.Completed},
		"nothing":        {func(*rig, string) {}, task.Completed},
	} {
		with(t, func(t *testing.T, r *rig) {
			moving := make(chan struct{})
			r.house.act = func(string, string) { <-moving }
			first := r.ask(t, ann, request("a", "1", "m"))
			ended := make(chan struct{})
			go func() { defer close(ended); tt.end(r, first.ID) }()
			if name == "late" {
				time.Sleep(90 * time.Minute)
			}
			synctest.Wait()
			close(moving)
			<-ended
			synctest.Wait()
			if got := r.task(t, boss, first.ID); got.State != tt.state || len(got.Steps) != 1 || got.Steps[0].Outcome != "done" {
				t.Errorf("%s: %+v", name, got)
			}
			if held := r.house.holds("m1/p0"); held != (name == "nothing") {
				t.Errorf("%s: held %t", name, held)
			}
		})
	}
}

// TestEndOfSite: outputs of other sites do not go to safe with this one, so that its end releases
// what tasks hold.
func TestEndOfSite(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.ask(t, ann, request("a", "1", "mw"))
		r.stop()
		if len(r.house.holding()) > 0 {
			t.Errorf("held: %v", r.house.holding())
		}
		r.start()
	})
}

// slow is a site of which one other site answers nothing.
type slow struct{ *house }

func (s slow) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	if r.Value.IsZero() && r.Output == "far/m/p" {
		<-ctx.Done()
		return agents.Output{}, device.Faultf(device.Offline, "no answer")
	}
	return s.house.Move(ctx, p, r)
}

// TestReleaseBesideSlowSite: another site that does not answer delays no release here, nor at a third.
func TestReleaseBesideSlowSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(newDesk())
		m := New(Options{Site: slow{h}})
		w := &work{m: m, j: newJob(record{}, 0), self: ann, ctx: t.Context()}
		for _, output := range []string{"far/m/p", "m/p", "third/m/p"} {
			h.held[output] = true
			w.j.moved = append(w.j.moved, output)
		}
		go w.release()
		synctest.Wait()
		if h.holds("m/p") || h.holds("third/m/p") {
			t.Errorf("held: %v", h.holding())
		}
		time.Sleep(stepTimeout)
	})
}

// TestKilledSite: leases that a task held at another site when this one was killed are released
// when the task is canceled after the start, at work or waiting.
func TestKilledSite(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"at work":     func(*rig) {},
		"paused":      func(r *rig) { r.crew.change("a", func(w *hosted.Worker) { w.Paused = true }) },
		"not allowed": func(r *rig) { r.desk.refuse(ann, true) },
		"changed":     func(r *rig) { r.crew.change("a", func(w *hosted.Worker) { w.Digest[0] = 1 }) },
	} {
		with(t, func(t *testing.T, r *rig) {
			first := r.ask(t, ann, request("a", "1/x", "mw"))
			r.stop()
			r.house.held["m1/x/p0"] = true
			change(r)
			r.start()
			synctest.Wait()
			if got, err := r.Cancel(t.Context(), boss, first.ID); err != nil || !got.State.Ended() || r.house.holds("m1/x/p0") {
				t.Errorf("%s: %+v %v, held %v", name, got, err, r.house.holding())
			}
		})
	}
}
