package tasks

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// last returns the last step of a task.
func last(t task.Task) task.Step { return t.Steps[len(t.Steps)-1] }

// sleep passes time.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestFar: a step asks another site once, through the sites before this one and with a key of its
// own, and has its task's result.
func TestFar(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.result = jsontext.Value(`{"swept":3}`)
		q := keyed(request("a", "1", "mrm"), "once")
		q.Via = []string{"x", "y", "z"}
		got := r.ask(t, ann, q)
		if got.State != task.Working || len(got.Steps) != 2 || last(got).Op != agents.OpAsk || last(got).Outcome != "" || got.Says == "" {
			t.Errorf("%+v", got)
		}
		sleep(2 * time.Minute)
		got = r.task(t, ann, got.ID)
		if got.State != task.Completed || len(got.Steps) != 3 || got.Steps[1].Outcome != "done" || !strings.HasSuffix(string(got.Steps[1].Result), `,"result":{"swept":3}}`) {
			t.Errorf("%+v", got)
		}
		if len(r.shed.asks) != 1 || r.desk.charged != 1 {
			t.Fatalf("asked %d times, charged %d times", len(r.shed.asks), r.desk.charged)
		}
		asked := r.shed.asks[0]
		if asked.Agent != "tidy" || *asked.Key != "task/"+got.ID+"/2" || *asked.Seconds != 600 || !slices.Equal(asked.Via, []string{"x", "y", "z"}) || asked.Behalf.Asker != ann || asked.Behalf.Task != got.ID {
			t.Errorf("%+v", asked)
		}
	})
}

// TestFarDefect: the node is told of the end of a call to another site also when a defect ends it.
func TestFarDefect(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.panics = true
		got := r.ask(t, ann, request("a", "1", "r"))
		sleep(time.Minute)
		if got = r.task(t, ann, got.ID); got.State != task.Failed || len(r.desk.ended) != 1 || r.desk.ended[0] == nil {
			t.Errorf("%+v, %v", got, r.desk.ended)
		}
	})
}

// TestFarEnds: only a completed task completes the step. Every other end is an error with its kind,
// and the site is told to end what goes on.
func TestFarEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		shed     func(*shed)
		kind     device.FaultKind
		canceled bool
	}{
		"failed":             {func(s *shed) { s.ends = task.Failed }, device.Busy, false},
		"fails with words":   {func(s *shed) { s.ends, s.result = task.Failed, jsontext.Value(`"No room is left"`) }, device.Busy, false},
		"rejected":           {func(s *shed) { s.ends = task.Rejected }, device.Invalid, false},
		"canceled there":     {func(s *shed) { s.ends = task.Canceled }, device.Unavailable, false},
		"never ends":         {func(s *shed) { s.ends = "" }, device.Expired, true},
		"tells much":         {func(s *shed) { s.ends, s.flood = "", true }, device.Expired, true},
		"asks":               {func(s *shed) { s.question = true }, device.Unavailable, true},
		"refuses":            {func(s *shed) { s.wrong = device.Faultf(device.Denied, "no") }, device.Denied, false},
		"is full":            {func(s *shed) { s.wrong = device.Faultf(device.Busy, "no") }, device.Busy, false},
		"makes no sense":     {func(s *shed) { s.wrong = device.Faultf(device.Internal, "what") }, device.UnknownOutcome, false},
		"is away":            {func(s *shed) { s.away = true }, device.UnknownOutcome, false},
		"is never reached":   {func(s *shed) { s.house.desk.away = true }, device.Offline, false},
		"refuses the grant":  {func(s *shed) { s.house.desk.away, s.refused = true, device.Faultf(device.Denied, "no") }, device.Denied, false},
		"answers nothing":    {func(s *shed) { s.lost = true }, device.UnknownOutcome, false},
		"its owner is asked": {func(s *shed) { s.needs = 1000 }, device.UnknownOutcome, false},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, func(t *testing.T, r *rig) {
				tt.shed(r.shed)
				got := r.ask(t, ann, request("a", "1", "mrm"))
				sleep(12 * time.Minute)
				got = r.task(t, ann, got.ID)
				if got.State != task.Failed || got.Fault != string(tt.kind) || len(got.Steps) != 2 || last(got).Outcome != string(tt.kind) || last(got).Says == "" {
					t.Errorf("%+v", got)
				}
				if words := string(r.shed.result); !strings.Contains(string(last(got).Result), words) || strings.Contains(last(got).Says, "No room") {
					t.Errorf("the words are %s, and in the result of the step alone: %+v", words, last(got))
				}
				if r.house.holds("m1/p0") {
					t.Error("it holds what it moved")
				}
				if canceled := len(r.shed.canceled) > 0; canceled != tt.canceled {
					t.Errorf("canceled there: %t; %s", canceled, got.Says)
				}
				if n := len(r.shed.asks); n > 200 {
					t.Errorf("it was asked %d times", n)
				}
				if len(r.shed.byKey) > 1 {
					t.Error("it was asked for two tasks")
				}
			})
		})
	}
}

// TestFarLost: a site that is lost, before it answers or after, is waited for, and it is one task.
func TestFarLost(t *testing.T) {
	for name, how := range map[string]func(s *shed, is bool){
		"away":      func(s *shed, is bool) { s.away = is },
		"no answer": func(s *shed, is bool) { s.lost = is },
	} {
		for _, early := range []bool{true, false} {
			with(t, func(t *testing.T, r *rig) {
				if early {
					how(r.shed, true)
				}
				got := r.ask(t, ann, request("a", "1", "r"))
				sleep(10 * time.Second)
				r.shed.change(func(s *shed) { how(s, true) })
				sleep(5 * time.Minute)
				got = r.task(t, ann, got.ID)
				if waits := strings.HasPrefix(got.Says, "waits for shed: shed "); (early || name == "away") != waits {
					t.Errorf("%s %t: %q", name, early, got.Says)
				}
				r.shed.change(func(s *shed) { how(s, false) })
				sleep(3 * time.Minute)
				if got = r.task(t, ann, got.ID); got.State != task.Completed || r.house.counts()["r1/p0"] != 1 || r.desk.charged != 1 {
					t.Errorf("%s %t: %+v, charged %d times", name, early, got, r.desk.charged)
				}
			})
		}
	}
}

// TestFarDoubt: a refusal after a try that was not answered does not say that nothing was done.
func TestFarDoubt(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.lost = true
		got := r.ask(t, ann, request("a", "1", "r"))
		sleep(10 * time.Second)
		r.shed.change(func(s *shed) { s.wrong = device.Faultf(device.Denied, "no") })
		sleep(time.Minute)
		if got = r.task(t, ann, got.ID); got.State != task.Failed || got.Fault != string(device.UnknownOutcome) || !strings.Contains(got.Says, "may go on there") {
			t.Errorf("%+v", got)
		}
	})
}

// TestFarLate: a task that ended in time while this site was off is taken after it.
func TestFarLate(t *testing.T) {
	for _, ends := range []task.State{task.Completed, ""} {
		with(t, func(t *testing.T, r *rig) {
			r.shed.ends = ends
			got := r.ask(t, ann, request("a", "1", "r"))
			sleep(10 * time.Second)
			r.stop()
			sleep(20 * time.Minute)
			r.start()
			sleep(time.Minute)
			want := task.Completed
			if ends == "" {
				want = task.Failed
			}
			if got = r.task(t, ann, got.ID); got.State != want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestFarLong: a result that is too long is left out, and the step is still done.
func TestFarLong(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.result, _ = json.Marshal(strings.Repeat("x", 10<<20))
		got := r.ask(t, ann, request("a", "1", "rm"))
		sleep(2 * time.Minute)
		if got = r.task(t, ann, got.ID); got.State != task.Completed || !strings.Contains(string(got.Steps[0].Result), "result_left_out") {
			t.Errorf("%+v", got)
		}
	})
}

// TestFarApprovals: an owner of this site approves a request to another site before it is sent, and
// an owner there may have to as well. Only the first approval has a state of its own.
func TestFarApprovals(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.needs = 3
		args, _ := json.Marshal(scriptArgs{N: "1", Do: "r", Far: "shed/open"})
		got := r.ask(t, ann, task.Request{Agent: "a", Skill: "run", Arguments: args})
		if got.State != task.AuthRequired || len(r.shed.asks) != 0 {
			t.Fatalf("%+v", got)
		}
		r.stop()
		r.start()
		if synctest.Wait(); r.task(t, ann, got.ID).State != task.AuthRequired {
			t.Fatalf("after a restart: %+v", r.task(t, ann, got.ID))
		}
		r.desk.approve()
		sleep(time.Second)
		if got = r.task(t, ann, got.ID); got.State != task.Working || !strings.Contains(got.Says, "owner of shed") {
			t.Errorf("%+v", got)
		}
		r.stop() // approved here, and asked: it is not approved again
		r.start()
		sleep(5 * time.Minute)
		if got = r.task(t, ann, got.ID); got.State != task.Completed || r.house.counts()["r1/p0"] != 1 || r.desk.charged != 1 {
			t.Errorf("%+v, charged %d times", got, r.desk.charged)
		}
	})
}

// TestFarRestart: after a restart, a step that waits for another site goes on waiting for the same
// task, also if its request had not been sent yet.
func TestFarRestart(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.length = 3 * time.Minute
		got := r.ask(t, ann, request("a", "1", "mrm"))
		sleep(time.Minute)
		r.stop()
		sleep(time.Minute)
		r.start()
		sleep(30 * time.Second)
		if now := r.task(t, ann, got.ID); now.State != task.Working || len(now.Steps) != 2 {
			t.Fatalf("%+v", now)
		}
		sleep(2 * time.Minute)
		if now := r.task(t, ann, got.ID); now.State != task.Completed || len(r.shed.asks) != 1 {
			t.Errorf("%+v, asked %d times", now, len(r.shed.asks))
		}
		r.desk.mu.Lock()
		r.desk.charged = 0
		r.desk.mu.Unlock()
		r.shed.away = true
		got = r.ask(t, ann, request("a", "2", "r"))
		sleep(time.Minute)
		r.stop()
		r.start()
		r.shed.change(func(s *shed) { s.away = false })
		sleep(5 * time.Minute)
		if now := r.task(t, ann, got.ID); now.State != task.Completed || r.house.counts()["r2/p0"] != 1 {
			t.Errorf("%+v", now)
		}
		// Its time counts over the restart.
		r.shed.change(func(s *shed) { s.ends = "" })
		got = r.ask(t, ann, request("a", "3", "r"))
		sleep(8 * time.Minute)
		r.stop()
		r.start()
		sleep(3 * time.Minute)
		if now := r.task(t, ann, got.ID); now.State != task.Failed || now.Fault != string(device.Expired) || len(r.shed.canceled) != 1 {
			t.Errorf("%+v", now)
		}
	})
}

// TestFarCancel: canceling a task cancels the task at another site that it waits for, also before
// it is worked on again after a start, and without an answer of that site.
func TestFarCancel(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, away := range []bool{false, true} {
			with(t, func(t *testing.T, r *rig) {
				r.shed.ends = ""
				got := r.ask(t, ann, request("a", "1", "r"))
				sleep(10 * time.Second)
				if restart {
					r.stop()
					r.crew.change("a", func(w *hosted.Worker) { w.Paused = true })
					r.start()
				}
				r.shed.change(func(s *shed) { s.away = away })
				now, err := r.Cancel(t.Context(), ann, got.ID)
				if err != nil || now.State != task.Canceled {
					t.Fatalf("%+v %v", now, err)
				}
				kind := device.Unavailable
				if away {
					kind = device.UnknownOutcome
				}
				if len(r.shed.canceled) > 0 == away || last(now).Outcome != string(kind) {
					t.Errorf("restart %t, away %t: canceled there %v: %+v", restart, away, r.shed.canceled, now)
				}
			})
		}
	}
}

// TestFarCancelAsking: if a task is canceled while its request to another site is pending, the task
// there is canceled too, if that site answers soon. One that does not delays neither that nor the
// site's end.
func TestFarCancelAsking(t *testing.T) {
	for _, slow := range []time.Duration{time.Second + farAnswer/4, 10 * time.Second} {
		for _, stop := range []bool{false, true} {
			with(t, func(t *testing.T, r *rig) {
				r.shed.slow, r.shed.ends = slow, ""
				got := r.ask(t, ann, request("a", "1", "r"))
				sleep(time.Second)
				began := time.Now()
				if stop {
					if r.stop(); time.Since(began) > farAnswer {
						t.Errorf("%v: the site ended after %v", slow, time.Since(began))
					}
					r.start()
				}
				now, err := r.Cancel(t.Context(), ann, got.ID)
				if err != nil || now.State != task.Canceled || time.Since(began) > 2*farAnswer {
					t.Errorf("%v: %+v %v after %v", slow, now, err, time.Since(began))
				}
				if told := slow < farAnswer; len(r.shed.canceled) > 0 != told {
					t.Errorf("%v, stopped %t: canceled there %v: %+v", slow, stop, r.shed.canceled, now)
				}
			})
		}
	}
}

// TestFarCancelEnding: the end of the site does not wait for an unreachable site that is to be told
// of a cancellation.
func TestFarCancelEnding(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.shed.ends = ""
		got := r.ask(t, ann, request("a", "1", "r"))
		sleep(10 * time.Second)
		r.shed.change(func(s *shed) { s.away = true })
		ended := make(chan struct{})
		go func() { defer close(ended); r.Cancel(context.Background(), ann, got.ID) }()
		sleep(farRetryMin / 2)
		began := time.Now()
		if r.stop(); time.Since(began) > farRetryMin {
			t.Errorf("it took %v", time.Since(began))
		}
		<-ended
		r.start()
	})
}
