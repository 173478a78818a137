package tasks

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json/jsontext"
)

// with runs a test in a bubble, with a running manager.
func with(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.start()
		defer func() { r.Manager.stopTimers(); r.stop() }()
		synctest.Wait() // it has read the disk, which a test may replace
		test(t, r)
	})
}

// stopTimers ends the time of tasks, so that a bubble can end.
func (m *Manager) stopTimers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.live {
		j.timer.Stop()
	}
}

// ask asks, and waits until nothing moves any more.
func (r *rig) ask(t *testing.T, p agents.Principal, q task.Request) task.Task {
	t.Helper()
	got, err := r.Ask(t.Context(), p, q)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r.task(t, p, got.ID)
}

func (r *rig) task(t *testing.T, p agents.Principal, id string) task.Task {
	t.Helper()
	got, err := r.Task(t.Context(), p, id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func kindOf(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

// TestTask: an agent works on its task, whose steps name the calls and the asker.
func TestTask(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		got := r.ask(t, ann, request("a", "1", "mxs"))
		if got.State != task.Completed || string(got.Result) != `{"n":"1"}` || len(got.Steps) != 3 || got.Steps[0].Does == "" ||
			got.Steps[0].Output != "m1/p0" || got.Steps[0].Value != device.Number(1) || got.Steps[1].Op != agents.OpShow ||
			got.Steps[2].Outcome != "done" || string(got.Steps[2].Result) != `{"at":2}` || got.Asker != ann.ID || got.Question != nil {
			t.Errorf("%+v", got)
		}
		if via := r.house.via("m1/p0"); len(via) != 2 || via[0] != ann.ID || via[1] != "task/"+got.ID {
			t.Errorf("through %q", via)
		}
		if !r.house.holds("m1/p0") {
			t.Error("a completed task has released what it holds")
		}
		if got := r.ask(t, ann, request("a", "2", "i")); got.State != task.Rejected || got.Says != "nobody does this" {
			t.Errorf("%+v", got)
		}
		if got := r.ask(t, ann, request("a", "3", "mi")); got.State != task.Failed || got.Fault != "invalid" || r.house.holds("m3/p0") {
			t.Errorf("%+v", got)
		}
		if got := r.ask(t, ann, request("a", "4", "f")); got.State != task.Failed || got.Fault != "internal" {
			t.Errorf("%+v", got)
		}
		if got := r.ask(t, ann, request("a", "5", "mp")); got.State != task.Failed || got.Fault != "internal" || r.house.holds("m5/p0") {
			t.Errorf("%+v", got)
		}
		if got := r.ask(t, ann, task.Request{Agent: "b", Skill: "rest", Text: "rest"}); got.State != task.Completed || got.Text != "rest" || got.Result != nil {
			t.Errorf("%+v", got)
		}
	})
}

// TestRequests: invalid requests are refused, each with its kind.
func TestRequests(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		number := func(n float64) *float64 { return &n }
		good := request("a", "1", "w")
		for name, tt := range map[string]struct {
			change func(*task.Request)
			want   device.FaultKind
		}{
			"nothing wrong":     {func(*task.Request) {}, ""},
			"no agent":          {func(r *task.Request) { r.Agent = "" }, device.Invalid},
			"another agent":     {func(r *task.Request) { r.Agent = "c" }, device.Invalid},
			"no skill of two":   {func(r *task.Request) { r.Skill = "" }, device.Invalid},
			"another skill":     {func(r *task.Request) { r.Skill = "fly" }, device.Invalid},
			"a list":            {func(r *task.Request) { r.Arguments = jsontext.Value("[1]") }, device.Invalid},
			"no JSON":           {func(r *task.Request) { r.Arguments = jsontext.Value("{") }, device.Invalid},
			"two texts":         {func(r *task.Request) { r.Arguments = jsontext.Value("{}{}") }, device.Invalid},
			"one name twice":    {func(r *task.Request) { r.Arguments = jsontext.Value(`{"n":1,"n":2}`) }, device.Invalid},
			"no UTF-8":          {func(r *task.Request) { r.Arguments = jsontext.Value("{\"n\":\"\xff\"}") }, device.Invalid},
			"arguments of none": {func(r *task.Request) { r.Skill = "rest" }, device.Invalid},
			"no time":           {func(r *task.Request) { r.Seconds = number(0) }, device.Invalid},
			"two days":          {func(r *task.Request) { r.Seconds = number(2 * 86400) }, device.Invalid},
			"a wrong text":      {func(r *task.Request) { r.Text = "\xff" }, device.Invalid},
			"a long text":       {func(r *task.Request) { r.Text = strings.Repeat("x", maxText+1) }, device.Invalid},
			"long arguments": {func(r *task.Request) {
				r.Arguments = jsontext.Value(`{"n":"` + strings.Repeat("x", maxArgs) + `"}`)
			}, device.Invalid},
			"an empty key": {func(r *task.Request) { k := ""; r.Key = &k }, device.Invalid},
			"a long key":   {func(r *task.Request) { k := strings.Repeat("k", 65); r.Key = &k }, device.Invalid},
			"a wrong key":  {func(r *task.Request) { k := "ü"; r.Key = &k }, device.Invalid},
			"many sites":   {func(r *task.Request) { r.Via = []string{"v", "w", "x", "y", "z"} }, device.Denied},
			"a long site":  {func(r *task.Request) { r.Via = []string{strings.Repeat("x", maxFile)} }, device.Invalid},
		} {
			q := good
			tt.change(&q)
			if _, err := r.Ask(t.Context(), ann, q); kindOf(err) != tt.want {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		}
		if _, err := r.Ask(t.Context(), agents.Principal{}, good); kindOf(err) != device.Denied {
			t.Errorf("nobody: %v", err)
		}
		r.desk.refuse(bob, true)
		if _, err := r.Ask(t.Context(), bob, good); kindOf(err) != device.Denied {
			t.Errorf("without permission: %v", err)
		}
		if all, err := r.Agents(t.Context(), bob); len(all) != 0 || err != nil {
			t.Errorf("%v is offered agents: %v", bob, all)
		}
		if all, _ := r.Agents(t.Context(), ann); len(all) != 2 || all[0].Name != "a" || len(all[1].Skills) != 2 {
			t.Errorf("%v", all)
		}
	})
}

// TestKey: asked again with the same key, also over a restart and after its end, it is the same task.
func TestKey(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		first := r.ask(t, ann, keyed(request("a", "1", "mw"), "k"))
		same := func(when string) {
			t.Helper()
			if got := r.ask(t, ann, keyed(task.Request{Agent: "a", Skill: "run", Arguments: jsontext.Value(` { "do":"mw", "n":"1" } `)}, "k")); got.ID != first.ID {
				t.Errorf("%s it is another task", when)
			}
			if _, err := r.Ask(t.Context(), ann, keyed(request("a", "2", "mw"), "k")); kindOf(err) != device.Invalid {
				t.Errorf("%s the key stands for something else: %v", when, err)
			}
		}
		same("at once")
		if got := r.ask(t, bob, keyed(request("a", "1", "w"), "k")); got.ID == first.ID {
			t.Error("the key of one is another's")
		}
		r.stop()
		r.start()
		same("after a restart")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := r.task(t, ann, first.ID); got.State != task.Completed {
			t.Errorf("%+v", got)
		}
		same("after its end")
		r.stop()
		r.start()
		same("after a restart after its end")
		if n := r.house.counts()["m1/p0"]; n != 1 {
			t.Errorf("it was moved %d times", n)
		}
	})
}

// TestOrder: the tasks of one agent come one after another, those of two at the same time.
func TestOrder(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		first, second, other := r.ask(t, ann, request("a", "1", "w")), r.ask(t, bob, request("a", "2", "w")), r.ask(t, ann, request("b", "3", "w"))
		if first.State != task.Working || second.State != task.Submitted || other.State != task.Working || first.Says != "at 0" {
			t.Errorf("%s, %s, %s", first.State, second.State, other.State)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for id, want := range map[string]task.State{first.ID: task.Completed, second.ID: task.Working, other.ID: task.Completed} {
			if got := r.task(t, boss, id); got.State != want {
				t.Errorf("%s, want %s", got.State, want)
			}
		}
	})
}

// TestOwn: nobody but an owner sees a task of somebody else, live or ended.
func TestOwn(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		live, ended := r.ask(t, ann, request("a", "1", "q")), r.ask(t, ann, request("b", "2", ""))
		for _, id := range []string{live.ID, ended.ID, "", "../../x", strings.Repeat("A", 26)} {
			_, err := r.Task(t.Context(), bob, id)
			_, answered := r.Answer(t.Context(), bob, id, "q0", "yes")
			_, canceled := r.Cancel(t.Context(), bob, id)
			watched := r.Watch(t.Context(), bob, id, func(task.Task) error { return nil })
			for _, err := range []error{err, answered, canceled, watched} {
				if kindOf(err) != device.Invalid {
					t.Errorf("%q: %v", id, err)
				}
			}
		}
		for p, want := range map[agents.Principal]int{ann: 2, bob: 0, boss: 2} {
			all, err := r.List(t.Context(), p)
			if len(all) != want || err != nil {
				t.Errorf("%s sees %d tasks: %v", p.ID, len(all), err)
			}
			for i, one := range all {
				if one.Steps != nil || one.Result != nil || one.Arguments != nil || i > 0 && all[i-1].Created < one.Created {
					t.Errorf("%+v", all)
				}
			}
		}
		if _, err := r.List(t.Context(), agents.Principal{}); kindOf(err) != device.Denied {
			t.Errorf("nobody: %v", err)
		}
		if got, err := r.Answer(t.Context(), boss, live.ID, "q0", "no"); err != nil || got.State.Ended() && got.State != task.Completed {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// TestAnswer: a question waits for its asker, over restarts; wrong answers change nothing.
func TestAnswer(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		got := r.ask(t, ann, request("a", "1", "mqs"))
		asks := func() {
			t.Helper()
			synctest.Wait()
			if got := r.task(t, ann, got.ID); got.State != task.InputRequired || got.Question.Text != "well?" || len(got.Question.Options) != 2 {
				t.Fatalf("%+v", got)
			}
		}
		asks()
		for q, answer := range map[string]string{"q1": "maybe", "q2": "yes", "": "yes"} {
			if _, err := r.Answer(t.Context(), ann, got.ID, q, answer); kindOf(err) != device.Invalid {
				t.Errorf("%s to %s: %v", answer, q, err)
			}
		}
		r.stop()
		r.start()
		asks()
		r.stop()
		r.start()
		if _, err := r.Answer(t.Context(), ann, got.ID, "q1", "yes"); err != nil { // perhaps before its agent asks again
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.task(t, ann, got.ID); got.State != task.Completed || r.house.counts()["m1/p0"] != 1 {
			t.Errorf("%+v", got)
		}
		if _, err := r.Answer(t.Context(), ann, got.ID, "q1", "yes"); kindOf(err) != device.Invalid {
			t.Errorf("after its end: %v", err)
		}
	})
}

// TestAnswersAtOnce: of several answers, and a cancellation, at the same time, the first counts. The
// same answer again is a retry, another one is refused, and none is a defect.
func TestAnswersAtOnce(t *testing.T) {
	for _, answers := range [][]string{{"yes", "yes", "yes"}, {"yes", "no", "yes"}, {"yes", "", "no"}} {
		with(t, func(t *testing.T, r *rig) {
			got := r.ask(t, ann, request("a", "1", "mqs"))
			synctest.Wait()
			j := r.live[got.ID]
			j.writing.Lock() // so that all have seen the question before one of them counts
			errs := make([]error, len(answers))
			var all sync.WaitGroup
			for i, answer := range answers {
				all.Go(func() {
					if answer == "" {
						_, errs[i] = r.Cancel(t.Context(), ann, got.ID)
					} else {
						_, errs[i] = r.Answer(t.Context(), ann, got.ID, "q1", answer)
					}
				})
				synctest.Wait()
			}
			j.writing.Unlock()
			all.Wait()
			for i, err := range errs {
				if err != nil && (kindOf(err) != device.Invalid || answers[i] == answers[0] && !slices.Contains(answers, "")) {
					t.Errorf("%q, %q: %v", answers, answers[i], err)
				}
			}
			synctest.Wait()
			if got := r.task(t, ann, got.ID); !got.State.Ended() {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestApproval: a step that needs approval waits for an owner, in the owner's own channel only.
// After a restart it asks again and does not count as made.
func TestApproval(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		got := r.ask(t, ann, request("a", "1", "mo"))
		waits := func() {
			t.Helper()
			synctest.Wait()
			if got := r.task(t, ann, got.ID); got.State != task.AuthRequired || got.Question == nil {
				t.Fatalf("%+v", got)
			}
			for _, p := range []agents.Principal{ann, boss} {
				if _, err := r.Answer(t.Context(), p, got.ID, "approval", "yes"); kindOf(err) != device.Denied {
					t.Errorf("%s answers: %v", p.ID, err)
				}
			}
		}
		waits()
		r.stop()
		r.start()
		waits()
		r.crew.change("a", func(w *hosted.Worker) { w.Paused = true })
		r.Recheck()
		synctest.Wait()
		r.crew.change("a", func(w *hosted.Worker) { w.Paused = false })
		r.Recheck()
		waits()
		r.desk.approve()
		synctest.Wait()
		if got := r.task(t, ann, got.ID); got.State != task.Completed || r.house.counts()["o1/p1"] != 1 || len(got.Steps) != 2 {
			t.Errorf("%+v", got)
		}
		again := r.ask(t, ann, request("a", "2", "o"))
		if got, err := r.Cancel(t.Context(), ann, again.ID); err != nil || got.State != task.Canceled || len(got.Steps) != 0 {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// TestLateApproval: an owner's yes counts as long as the request waits, however long that was.
func TestLateApproval(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		got := r.ask(t, ann, request("a", "1", "o"))
		time.Sleep(approvalTime + time.Minute)
		synctest.Wait()
		r.desk.approve()
		synctest.Wait()
		if got := r.task(t, ann, got.ID); got.State != task.Completed || r.house.counts()["o1/p0"] != 1 {
			t.Errorf("%+v %v", got, r.house.counts())
		}
	})
}

// TestCancel: it ends before the next step, what it holds is released, and a queued one ends too.
func TestCancel(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		one, queued := r.ask(t, ann, request("a", "1", "mwm")), r.ask(t, ann, request("a", "2", "m"))
		if !r.house.holds("m1/p0") {
			t.Fatal("nothing is held")
		}
		for _, id := range []string{queued.ID, one.ID, one.ID} {
			if got, err := r.Cancel(t.Context(), ann, id); err != nil || got.State != task.Canceled {
				t.Errorf("%+v %v", got, err)
			}
		}
		if len(r.house.holding()) > 0 || r.house.counts()["m1/p2"]+r.house.counts()["m2/p0"] > 0 {
			t.Errorf("held: %v, done %v", r.house.holding(), r.house.counts())
		}
	})
}

// TestTime: a task ends with its time, also if it has not begun, and over a restart. Downtime
// counts by the wall clock if that is sure, and otherwise not.
func TestTime(t *testing.T) {
	for _, sure := range []bool{true, false} {
		with(t, func(t *testing.T, r *rig) {
			r.sure = sure
			first, queued := r.ask(t, ann, request("a", "1", "mq")), r.ask(t, ann, request("a", "2", "q"))
			day := 86400.0
			long := request("b", "3", "q")
			long.Seconds = &day
			other := r.ask(t, ann, long)
			time.Sleep(30 * time.Minute)
			r.stop()
			time.Sleep(20 * time.Minute)
			r.start()
			synctest.Wait()
			time.Sleep(11 * time.Minute)
			synctest.Wait()
			if got := r.task(t, ann, first.ID); got.State.Ended() != sure {
				t.Errorf("sure %t: %+v", sure, got)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			for _, id := range []string{first.ID, queued.ID} {
				if got := r.task(t, ann, id); got.State != task.Failed || got.Fault != "expired" || !strings.Contains(got.Says, "1h") {
					t.Errorf("sure %t: %+v", sure, got)
				}
			}
			if len(r.house.holding()) > 1 || r.task(t, ann, other.ID).State.Ended() {
				t.Errorf("held: %v", r.house.holding())
			}
		})
	}
}

// TestChanges: tasks of a removed or changed agent fail, those of a paused agent wait, and those of
// an asker whose permission ends are canceled.
func TestChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *rig)
		state  task.State
		fault  string
		held   int
	}{
		"gone":    {func(r *rig) { r.crew.mu.Lock(); r.crew.all = r.crew.all[1:]; r.crew.mu.Unlock() }, task.Failed, "unavailable", 0},
		"changed": {func(r *rig) { r.crew.change("a", func(w *hosted.Worker) { w.Digest[0] = 1 }) }, task.Failed, "unavailable", 0},
		"paused":  {func(r *rig) { r.crew.change("a", func(w *hosted.Worker) { w.Paused = true }) }, task.Working, "", 0},
		"revoked": {func(r *rig) { r.desk.refuse(ann, true) }, task.Canceled, "", 0},
		"nothing": {func(*rig) {}, task.Working, "", 1},
	} {
		for _, restart := range []bool{false, true} {
			with(t, func(t *testing.T, r *rig) {
				first := r.ask(t, ann, request("a", "1", "mw"))
				tt.change(r)
				state := tt.state
				if restart {
					r.stop()
					r.start()
					if name == "revoked" { // perhaps it was not shown yet
						state = task.Working
					}
				}
				r.Recheck()
				synctest.Wait()
				if got := r.task(t, boss, first.ID); got.State != state || got.Fault != tt.fault {
					t.Errorf("%s: %+v", name, got)
				}
				if !restart && len(r.house.holding()) != tt.held {
					t.Errorf("%s: held %v", name, r.house.holding())
				}
				if n := r.house.counts()["m1/p0"]; n != 1 {
					t.Errorf("%s: moved %d times", name, n)
				}
			})
		}
	}
	with(t, func(t *testing.T, r *rig) {
		first := r.ask(t, ann, request("a", "1", "mwm"))
		r.stop()
		r.desk.refuse(ann, true)
		r.start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := r.task(t, boss, first.ID); got.State != task.Working || r.house.counts()["m1/p2"] != 0 {
			t.Errorf("without its asker: %+v", got)
		}
		r.desk.refuse(ann, false)
		r.task(t, ann, first.ID)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.task(t, ann, first.ID); got.State != task.Completed {
			t.Errorf("its asker is back: %+v", got)
		}
	})
}
