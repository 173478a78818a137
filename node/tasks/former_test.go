package tasks

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/hosted"
)

// TestRemovedAgent: an agent that gets the name of a removed one knows neither the conversations with
// that nor the tasks that it asked for, whether the site runs meanwhile or not. Askers and owners keep
// theirs, and a changed agent its own.
func TestRemovedAgent(t *testing.T) {
	self := agents.Principal{ID: "llm:a"}
	for name, tt := range map[string]struct {
		between func(r *rig, none, some []hosted.Worker)
		knows   bool
	}{
		"changed": {func(r *rig, _, some []hosted.Worker) {
			r.crew.change("a", func(w *hosted.Worker) { w.Digest[0]++ })
			r.Recheck()
		}, true},
		"removed": {func(r *rig, none, some []hosted.Worker) {
			r.crew.set(none)
			r.Recheck()
			synctest.Wait()
			r.crew.set(some)
			r.Recheck()
		}, false},
		"removed while the site is off": {func(r *rig, none, some []hosted.Worker) {
			r.stop()
			r.crew.set(none)
			r.start()
			synctest.Wait()
			r.stop()
			r.crew.set(some)
			r.start()
		}, false},
	} {
		with(t, func(t *testing.T, r *rig) {
			r.stop()
			r.hosts = func(who string) bool {
				for _, w := range r.crew.workers() {
					if who == "llm:"+w.Name {
						return true
					}
				}
				return false
			}
			r.crew.all[0].Worker = talker{}
			r.start()
			say := func(p agents.Principal, text string) task.Task {
				got, err := r.Ask(t.Context(), p, task.Request{Agent: "a", Text: text, Context: "c"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				return r.task(t, boss, got.ID)
			}
			first, second := say(ann, "one"), say(self, "two")
			if tt.between(r, r.crew.workers()[1:], r.crew.workers()); first.State != task.Completed {
				t.Fatalf("%+v", first)
			}
			synctest.Wait()
			if got := say(ann, "three").Result; (string(got) == `"one"`) != tt.knows {
				t.Errorf("%s: it knows %s", name, got)
			}
			for _, of := range []struct {
				who  agents.Principal
				id   string
				want bool
			}{{ann, first.ID, true}, {boss, first.ID, true}, {boss, second.ID, true}, {self, second.ID, tt.knows}} {
				_, err := r.Task(t.Context(), of.who, of.id)
				all, _ := r.List(t.Context(), of.who)
				listed := false
				for _, t := range all {
					listed = listed || t.ID == of.id
				}
				if (err == nil) != of.want || listed != of.want {
					t.Errorf("%s: %s reads %v: %v %v", name, of.who.ID, of.id, err, listed)
				}
			}
		})
	}
}

// TestAskerGone: only agents of the site can be gone. Tokens and keys are not, whatever their names.
func TestAskerGone(t *testing.T) {
	m := new(Manager)
	m.Hosted = func(who string) bool { return who == "llm:a" }
	for asker, gone := range map[string]bool{
		"llm:a": false, "llm:b": true, "rule:token": true, "token:llm.1f3a0b9c": false, "token:b": false, "token": false,
		"local": false, "local-agent": false, "did:key:b": false, "ann": false, "": false,
	} {
		if m.askerGone(asker) != gone {
			t.Errorf("%q is gone: %v", asker, !gone)
		}
	}
}
