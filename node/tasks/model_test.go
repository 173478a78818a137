package tasks

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/hosted"

	"pgregory.net/rapid"
)

// op is something that happens in the model's test.
type op struct {
	what  string
	agent string
	asker agents.Principal
	do    string
	which int // of the tasks
}

func (o op) String() string {
	return fmt.Sprintf("%s %s %s %q %d", o.what, o.agent, o.asker.ID, o.do, o.which)
}

func drawOps(t *rapid.T) (all []op) {
	for range rapid.IntRange(1, 25).Draw(t, "ops") {
		all = append(all, op{
			what:  rapid.SampledFrom([]string{"ask", "ask", "ask", "answer", "answer", "approve", "cancel", "sleep", "sleep", "pause", "resume", "restart", "change", "revoke", "recheck"}).Draw(t, "what"),
			agent: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"),
			asker: rapid.SampledFrom([]agents.Principal{ann, bob, boss}).Draw(t, "asker"),
			do:    rapid.StringMatching(`[mmxsqo]{0,4}[fi]?`).Draw(t, "do"),
			which: rapid.IntRange(0, 9).Draw(t, "which"),
		})
	}
	return all
}

// plainTask is a task of the model.
type plainTask struct {
	id       string
	agent    string
	asker    agents.Principal
	do       string
	digest   byte
	at       int // in do
	acts     int // steps that did something
	answered bool
	approved bool
	state    task.State
	end      time.Time
}

// plain is the manager once more, as one would describe it: no concurrency, no disk.
type plain struct {
	tasks   []*plainTask
	paused  map[string]bool
	digests map[string]byte
	refused map[string]bool
}

func (p *plain) live(account string) (n int) {
	for _, t := range p.tasks {
		if !t.state.Ended() && t.asker.ID == account {
			n++
		}
	}
	return n
}

// settle brings every task as far as it goes now.
func (p *plain) settle(now time.Time) {
	for _, t := range p.tasks {
		switch {
		case t.state.Ended():
		case !now.Before(t.end):
			t.state = task.Failed
		case p.digests[t.agent] != t.digest:
			t.state = task.Failed
		case p.refused[t.asker.ID]:
			t.state = task.Canceled
		}
	}
	for _, agent := range []string{"a", "b"} {
		for _, t := range p.tasks {
			if t.agent != agent || t.state.Ended() {
				continue
			}
			if !p.paused[agent] {
				t.work() // one that waits for somebody gives its turn back
			}
		}
	}
}

func (t *plainTask) work() {
	if t.state == task.Submitted {
		t.state = task.Working
	}
	for ; t.at < len(t.do); t.at++ {
		switch t.do[t.at] {
		case 'm', 'x', 's':
			t.acts++
		case 'q':
			if !t.answered {
				t.state = task.InputRequired
				return
			}
			t.answered, t.state = false, task.Working
		case 'o':
			if !t.approved {
				t.state = task.AuthRequired
				return
			}
			t.approved, t.state = false, task.Working
			t.acts++
		case 'f':
			t.state = task.Failed
			return
		case 'i':
			if t.state = task.Failed; t.acts == 0 {
				t.state = task.Rejected
			}
			return
		}
	}
	t.state = task.Completed
}

// follow makes the operations, in the manager and in the model, and returns where they differ.
func follow(t *testing.T, ops []op) (difference string) {
	r := newRig()
	r.start()
	defer func() { r.stopTimers(); r.stop() }()
	p := &plain{paused: map[string]bool{}, digests: map[string]byte{}, refused: map[string]bool{}}
	for i, o := range ops {
		var one *plainTask
		if len(p.tasks) > 0 {
			one = p.tasks[o.which%len(p.tasks)]
		}
		switch o.what {
		case "ask":
			n := fmt.Sprint(len(p.tasks))
			key := "key " + n
			got, err := r.Ask(t.Context(), o.asker, keyed(request(o.agent, n, o.do), key))
			wanted := !p.refused[o.asker.ID] && p.live(o.asker.ID) < maxAccount
			if (err == nil) != wanted {
				return fmt.Sprintf("%d %v: %v", i, o, err)
			}
			if err == nil {
				p.tasks = append(p.tasks, &plainTask{id: got.ID, agent: o.agent, asker: o.asker, do: o.do, digest: p.digests[o.agent], state: task.Submitted, end: time.Now().Add(defaultTime)})
			}
		case "answer":
			if one == nil {
				continue
			}
			_, err := r.Answer(t.Context(), one.asker, one.id, fmt.Sprint("q", one.at), "yes")
			again := one.answered && !one.state.Ended() // a retry
			if wanted := one.state == task.InputRequired || again; (err == nil) != wanted {
				return fmt.Sprintf("%d %v in %s: %v", i, o, one.state, err)
			}
			one.answered = again || one.state == task.InputRequired
			if one.answered && p.paused[one.agent] {
				one.state = task.Working
			}
		case "approve":
			for _, one := range p.tasks {
				if one.state == task.AuthRequired && !p.paused[one.agent] {
					one.approved = true
				}
			}
			r.desk.approve()
		case "cancel":
			if one == nil {
				continue
			}
			if _, err := r.Cancel(t.Context(), boss, one.id); err != nil {
				return fmt.Sprintf("%d %v: %v", i, o, err)
			}
			if !one.state.Ended() {
				one.state = task.Canceled
			}
		case "sleep":
			for range 1 + o.which*3 {
				time.Sleep(30 * time.Second)
				synctest.Wait()
				p.settle(time.Now())
			}
		case "pause", "resume":
			p.paused[o.agent] = o.what == "pause"
			r.crew.change(o.agent, func(w *hosted.Worker) { w.Paused = p.paused[o.agent] })
			r.Recheck()
		case "restart":
			r.stop()
			clear(r.house.held) // outputs are safe when a site starts
			r.start()
		case "change":
			p.digests[o.agent]++
			r.crew.change(o.agent, func(w *hosted.Worker) { w.Digest[0]++ })
			r.Recheck()
		case "revoke":
			p.refused[o.asker.ID] = o.which%2 == 0
			r.desk.refuse(o.asker, p.refused[o.asker.ID])
			r.Recheck()
		case "recheck":
			r.Recheck()
		}
		synctest.Wait()
		p.settle(time.Now())
		counts := r.house.counts()
		for n, one := range p.tasks {
			got, err := r.Task(t.Context(), one.asker, one.id)
			if err != nil || got.State != one.state {
				return fmt.Sprintf("after %d %v: task %d %q is %s at %d, not %s: %v (%s)", i, o, n, one.do, got.State, one.at, one.state, err, got.Says)
			}
			acts := 0
			for at := range one.do {
				name := fmt.Sprintf("%c%d/p%d", one.do[at], n, at)
				if acts += counts[name]; counts[name] > 1 {
					return fmt.Sprintf("after %d %v: %s was done %d times", i, o, name, counts[name])
				}
				if r.house.holds(name) && one.state.Ended() && one.state != task.Completed {
					return fmt.Sprintf("after %d %v: %s is held after %s", i, o, name, one.state)
				}
			}
			if acts != one.acts {
				return fmt.Sprintf("after %d %v: task %d %q has done %d things, not %d", i, o, n, one.do, acts, one.acts)
			}
		}
	}
	return ""
}

// TestModel: whatever happens, the manager does what the model says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := drawOps(rt)
		var difference string
		synctest.Test(t, func(t *testing.T) { difference = follow(t, ops) })
		if difference != "" {
			var all strings.Builder
			for i, o := range ops {
				fmt.Fprintln(&all, i, o)
			}
			rt.Fatalf("%s\n%s", difference, all.String())
		}
	})
}
